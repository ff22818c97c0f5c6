//! Banner and help.

/// Greets the first key.
pub(super) const BANNER: &str = r"
  .------------------------------------.
  |  [1] [2] [3] [4]        o  o  o    |
  |                                    |
  |   Z O D I A C   F X   (emulated)   |
  '------------------------------------'
  An emulator of the board, made for the Loko testbed
  Type help for a list of commands

";

/// All commands by context.
pub(super) const HELP: &str = "
The following commands are available:

Base:
 config
 openflow
 debug
 update
 show ports
 show status
 show version
 restart
 help

Config:
 save
 restart
 show config
 show vlans
 set name <name>
 set mac-address <mac address>
 set ip-address <ip address>
 set netmask <netmask>
 set gateway <gateway ip address>
 set of-controller <openflow controller ip address>
 set of-port <openflow controller tcp port>
 set failstate <secure|safe>
 set of-version <version(0|1|4)>
 set ethertype-filter <enable|disable>
 add vlan <vlan id> <vlan name>
 delete vlan <vlan id>
 set vlan-type <vlan id> <openflow|native>
 set vlan-tag <vlan id> <tagged|untagged>
 add vlan-port <vlan id> <port>
 delete vlan-port <port>
 factory reset
 exit

OpenFlow:
 show status
 show tables
 show flows
 show meters
 show groups
 enable
 disable
 clear flows
 exit

Debug:
 read <register>
 write <register> <value>
 mem
 trace
 exit

";
