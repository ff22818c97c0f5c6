Creator "yFiles"
graph
[
  directed 0
  Network "Two offices"
  node
  [
    id 7
    label "Gen&#232;ve"
  ]
  node
  [
    id 8
    label "Gen&#232;ve"
  ]
  node
  [
    id 9
    label ""
  ]
  node
  [
    id 10
    label "Offices"
    isGroup 1
  ]
  edge
  [
    source 7
    target 8
    LinkLabel "1 Gbit/s"
  ]
  edge
  [
    source 7
    target 8
    LinkLabel "10 Gbit/s"
  ]
  edge
  [
    source 8
    target 9
  ]
]
