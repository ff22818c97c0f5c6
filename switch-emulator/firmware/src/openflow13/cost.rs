//! Cost of the OpenFlow 1.3 search, field by field.

use super::matching::Test;
use crate::profile::{FieldCost, OpenFlow13Costs};

impl OpenFlow13Costs {
    /// Testing one field of an entry.
    pub(super) const fn field(&self, test: Test) -> FieldCost {
        match test {
            Test::InPort(_) => self.in_port,
            Test::EthDst(_) => self.eth_dst,
            Test::EthSrc(_) => self.eth_src,
            Test::EthDstMasked(..) | Test::EthSrcMasked(..) => self.eth_masked,
            Test::EthType(_) => self.eth_type,
            Test::VlanVid(_) => self.vlan_vid,
            Test::VlanVidMasked(..) => self.vlan_vid_masked,
            Test::VlanPcp(_) => self.vlan_pcp,
            Test::IpDscp(_) | Test::IpEcn(_) => self.ip_dscp,
            Test::IpProto(_) => self.ip_proto,
            Test::Source(_) => self.ipv4_src,
            Test::Destination(_) => self.ipv4_dst,
            Test::SourceMasked(..) | Test::DestinationMasked(..) => self.ipv4_masked,
            Test::TcpSource(_) | Test::TcpDestination(_) => self.tcp_port,
            Test::UdpSource(_) | Test::UdpDestination(_) => self.udp_port,
            Test::MplsLabel(_) | Test::MplsTc(_) | Test::MplsBos(_) => self.mpls,
            Test::Never => self.unsupported,
        }
    }
}
