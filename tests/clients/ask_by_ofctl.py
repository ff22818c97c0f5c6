"""An application that uses os-ken's own service `ofctl`, which ends each request with a barrier."""

from os_ken.app.ofctl import api
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_0


class AskByOfctl(app_manager.OSKenApp):
    OFP_VERSIONS = (ofproto_v1_0.OFP_VERSION,)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER])
    def on_switch(self, change):
        hub.spawn(self.ask, change.datapath)

    def ask(self, datapath):
        parser, ofproto = datapath.ofproto_parser, datapath.ofproto
        actions = [parser.OFPActionOutput(2)]
        match = parser.OFPMatch(in_port=1)
        api.send_msg(
            self, parser.OFPFlowMod(datapath, match, 0, ofproto.OFPFC_ADD, priority=1, actions=actions)
        )
        print("flow entry: barrier passed", flush=True)
        request = parser.OFPDescStatsRequest(datapath, 0)
        [reply] = api.send_msg(self, request, reply_cls=parser.OFPDescStatsReply, reply_multi=True)
        print("description:", reply.body.sw_desc.decode(), flush=True)
