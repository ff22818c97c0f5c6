"""A learning switch for os-ken, in OpenFlow 1.0 and 1.3. Hosts are on ports 1 to 3 (quirk 183 of the board).

It prints each session and each PORT_STATUS. `tests/clients/start_os_ken.py` starts it.
"""

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3


class LearningSwitch(OSKenApp):
    OFP_VERSIONS = (ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.places = {}
        """The port behind which each address is, by switch and address."""

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        path = event.msg.datapath
        self.places = {key: port for key, port in self.places.items() if key[0] != path.id}
        if path.ofproto.OFP_VERSION == ofproto_v1_3.OFP_VERSION:
            miss = path.ofproto_parser.OFPActionOutput(
                path.ofproto.OFPP_CONTROLLER, path.ofproto.OFPCML_NO_BUFFER
            )
            add(path, 0, path.ofproto_parser.OFPMatch(), miss)
        print(f"session {path.id:016x} {path.ofproto.OFP_VERSION} {path.address[0]}", flush=True)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message, path = event.msg, event.msg.datapath
        parser = path.ofproto_parser
        is_13 = path.ofproto.OFP_VERSION == ofproto_v1_3.OFP_VERSION
        arrived = message.match["in_port"] if is_13 else message.in_port
        header = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        self.places[path.id, header.src] = arrived
        known = self.places.get((path.id, header.dst))
        if known == arrived:  # another switch has flooded: sent back, it would teach that a wrong place
            return
        if known is not None:
            kind = "eth" if is_13 else "dl"
            match = parser.OFPMatch(
                **{"in_port": arrived, f"{kind}_dst": header.dst, f"{kind}_src": header.src}
            )
            add(path, 1, match, parser.OFPActionOutput(known))
        out = parser.OFPPacketOut(
            datapath=path,
            buffer_id=path.ofproto.OFP_NO_BUFFER,
            in_port=arrived,
            actions=[parser.OFPActionOutput(known or path.ofproto.OFPP_FLOOD)],
            data=message.data,
        )
        path.send_msg(out)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status(self, event):
        port, path = event.msg.desc, event.msg.datapath
        state = "down" if port.state & path.ofproto.OFPPS_LINK_DOWN else "up"
        print(f"port {path.id:016x} {port.port_no} {state}", flush=True)


def add(path, priority, match, action):
    parser = path.ofproto_parser
    if path.ofproto.OFP_VERSION == ofproto_v1_3.OFP_VERSION:
        instructions = [parser.OFPInstructionActions(path.ofproto.OFPIT_APPLY_ACTIONS, [action])]
        message = parser.OFPFlowMod(datapath=path, priority=priority, match=match, instructions=instructions)
    else:
        message = parser.OFPFlowMod(datapath=path, priority=priority, match=match, actions=[action])
    path.send_msg(message)
