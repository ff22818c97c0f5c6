// The two-switch network in ns-3, written as its users write one: point-to-point links, the Internet stack,
// global routing, UDP sockets. Two hosts on either side of two forwarding nodes; each host sends UDP packets
// that are frames of 306 bytes on an Ethernet (with FCS) to its peer on the other side. The nodes route and
// forward; they search no flow table and charge no processing time, and the queue disciplines that ns-3
// installs by default are taken off, so ns-3 does less for a packet here than our simulator does.
// With --switches=1 all four hosts are at one node.
//
// Prints one line of JSON: packets received, simulated seconds.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>

using namespace ns3;

namespace
{
constexpr uint32_t kFrameBytes = 306;              // with FCS
constexpr uint32_t kHeaderBytes = 14 + 20 + 8 + 4; // Ethernet, IPv4, UDP, FCS
constexpr uint16_t kPort = 5000;

uint64_t g_received = 0;

void
Receive(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
        ++g_received;
    }
}

void
Send(Ptr<Socket> socket, Time interval, Time end)
{
    socket->Send(Create<Packet>(kFrameBytes - kHeaderBytes));
    if (Simulator::Now() + interval < end)
    {
        Simulator::Schedule(interval, &Send, socket, interval, end);
    }
}

void
AddFlow(Ptr<Node> from, Ptr<Node> to, Time interval, Time end)
{
    Ptr<Socket> receiver = Socket::CreateSocket(to, UdpSocketFactory::GetTypeId());
    receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    receiver->SetRecvCallback(MakeCallback(&Receive));

    const Ipv4Address destination = to->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();
    Ptr<Socket> sender = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
    sender->Connect(InetSocketAddress(destination, kPort));
    Simulator::Schedule(Seconds(0), &Send, sender, interval, end);
}

NetDeviceContainer
Connect(Ptr<Node> one, Ptr<Node> other, Ipv4AddressHelper& addresses)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    link.SetChannelAttribute("Delay", StringValue("0ns"));
    NetDeviceContainer devices = link.Install(one, other);
    addresses.Assign(devices);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(devices);
    return devices;
}
} // namespace

int
main(int argc, char* argv[])
{
    double seconds = 100;
    double flow_bps = 2'370'000; // frames counted with FCS: the lab's fifth-rate allocation
    uint32_t switch_count = 2;
    CommandLine command(__FILE__);
    command.AddValue("switches", "forwarding nodes, 1 or 2", switch_count);
    command.AddValue("seconds", "simulated time in which the hosts send", seconds);
    command.AddValue("flow-bps", "rate of each of the four flows, bits of frames a second", flow_bps);
    command.Parse(argc, argv);

    NodeContainer hosts(4);
    NodeContainer switches(switch_count);
    InternetStackHelper().Install(NodeContainer(hosts, switches));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    for (uint32_t host = 0; host < hosts.GetN(); ++host)
    {
        Connect(hosts.Get(host), switches.Get(host * switch_count / hosts.GetN()), addresses);
    }
    if (switch_count == 2)
    {
        Connect(switches.Get(0), switches.Get(1), addresses);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const Time interval = Seconds(kFrameBytes * 8 / flow_bps);
    for (uint32_t host = 0; host < hosts.GetN(); ++host)
    {
        AddFlow(hosts.Get(host), hosts.Get((host + 2) % 4), interval, Seconds(seconds));
    }

    Simulator::Stop(Seconds(seconds + 1));
    Simulator::Run();
    Simulator::Destroy();
    std::cout << "{\"packets\": " << g_received << ", \"simulated_s\": " << seconds << "}" << std::endl;
    return 0;
}
