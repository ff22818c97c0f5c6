//! Causes for which a message has not done what it asks, each with the quirk's number and what to do instead.

use std::fmt;

macro_rules! causes {
    ($($(#[$meta:meta])* $name:ident $of10:literal $of13:literal $text:literal,)*) => {
        /// Why the firmware loses a message or does something else than it asks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cause {
            $($(#[$meta])* $name,)*
        }

        impl Cause {
            /// Quirks of `docs/quirks.md`, in OpenFlow 1.0 and 1.3, and what happens.
            const fn description(self) -> (&'static str, &'static str, &'static str) {
                match self {
                    $(Self::$name => ($of10, $of13, $text),)*
                }
            }
        }
    };
}

causes! {
    /// No version has been agreed on.
    NoVersion "2" "2" "lost: the session has no version that the board speaks; let the controller send HELLO first",
    /// A later HELLO changes the version.
    VersionChanged "3" "3" "changes the version in the middle of the session; send one HELLO",
    /// The message has another version than the session.
    OtherVersion "4" "4" "has another version than the session, and is read as if it had not; send the version agreed on",
    /// It is shorter than its type needs.
    Short "197" "139" "shorter than its type needs: what the receive buffer holds behind it is read in its place; send whole messages",
    /// The payload of an echo is lost.
    EchoPayload "5" "5" "answered without its payload; keep the payload at the controller",
    /// An echo before HELLO.
    EchoWithoutVersion "6" "6" "answered with version 0; send HELLO first",
    /// `SET_CONFIG` is ignored.
    ConfigIgnored "23" "95" "has no effect: the settings stay those that GET_CONFIG_REPLY tells, and a table miss is sent whole",
    /// A role other than MASTER, or a request of another length than 24.
    RoleIgnored "-" "96" "answered as a request for MASTER in 24 bytes, whatever it asks; ask for MASTER",
    /// There are no packet buffers.
    BufferIgnored "22" "137" "names a packet buffer, and the board has none: that packet is not sent (a PACKET_OUT sends its own data, or zeros); send the packet in the message, and OFP_NO_BUFFER",
    /// A list of actions that reaches beyond its message.
    ActionsBeyond "197" "181" "lost: its list of actions is longer than the message; send whole messages",
    /// `PACKET_OUT` without actions.
    NoActions "80" "182" "has no actions: the frame leaves by its in_port in OpenFlow 1.0, and what lies behind is taken for an action in 1.3; give one OUTPUT",
    /// `PACKET_OUT` with more than one OUTPUT.
    OneOutput "79" "181" "only one action of a PACKET_OUT counts, and only OUTPUT (the last in OpenFlow 1.0, the first in 1.3); send one message for each port",
    /// `PACKET_OUT` to a port that leads nowhere.
    OutputNowhere "73, 80" "184" "its frame leaves by none of the ports that it asks for: PACKET_OUT knows ports 1 to 4, TABLE and FLOOD; name a port, or FLOOD",
    /// `PACKET_OUT` to the ingress port.
    ToIngress "72" "72" "its frame leaves by its own in_port, where OpenFlow drops it; for that port say IN_PORT to other switches",
    /// `PACKET_OUT` with FLOOD reaches other ports.
    FloodElsewhere "71" "183" "FLOOD means other ports than those of OpenFlow here; name the ports one by one",
    /// `PACKET_OUT` from a port whose number has the low byte of another.
    IngressByLowByte "199" "-" "its frame does not leave by the port with the low byte of its in_port; give the number of a port, or NONE",
    /// `PACKET_OUT` with actions that go by the frame's first tag.
    ActionsByFirstTag "74 to 77" "-" "its actions change the frame in another way than they say: they go by the tag that it came with, and by fixed places; send the frame as it is to leave",
    /// `PACKET_OUT` without a frame.
    NoData "80" "184" "carries no frame: 60 zero bytes leave; send the frame in the message",
    /// A tag inserted by `PACKET_OUT` to TABLE.
    NextOverwritten "198" "185" "a tag inserted into its frame has overwritten the beginning of the next message in the segment; send it in a segment of its own",
    /// A `PACKET_IN` over collected multipart replies.
    RepliesOverwritten "-" "89" "its PACKET_IN has overwritten multipart replies of the same segment; send it in a segment of its own",
    /// An unknown command.
    CommandUnknown "58" "119" "does nothing, or something else: the command is unknown, or its high byte, which the firmware does not read, is not 0",
    /// Flags that the firmware ignores.
    FlagsIgnored "38, 60" "126, 138" "has flags that the firmware passes over (CHECK_OVERLAP, EMERG; in OpenFlow 1.3 all but SEND_FLOW_REM)",
    /// Actions that the switch cannot perform.
    ActionsUnchecked "54, 56, 57, 73, 193" "120" "accepted, though an action is unknown, misshapen, one of more than four, or sends to a port that does not exist: it does nothing or something else",
    /// `SET_VLAN_VID` 0.
    VlanZero "59" "-" "SET_VLAN_VID 0 is stored as STRIP_VLAN",
    /// Actions that are not those of the message.
    StaleActions "55, 190, 193" "-" "the entry has further actions, which the memory held before; delete all flows and let the board start again, or give every entry as many actions",
    /// Timeouts.
    TimeoutsIgnored "51" "-" "its timeouts are not kept: the entry stays for 8 minutes to 18 hours; delete it",
    /// Operation and addresses of ARP.
    ArpFieldsOpen "66" "-" "the entry matches other frames than it says: operation and addresses of ARP are not compared",
    /// A match field that the firmware takes in another way.
    MatchDiffers "62 to 65" "142 to 148" "the entry matches other frames than it says: of its fields some are taken in another way",
    /// A match that no frame fulfils.
    MatchNever "61, 68" "140, 141" "the entry never matches: no frame of its kind is looked for in the table",
    /// Fields and instructions that the firmware does not check.
    Unchecked "-" "120" "accepted, though its ports, match, actions, instructions, groups or meters are not valid: it does nothing or something else, or hangs the board",
    /// Instructions that are stored and ignored.
    InstructionsIgnored "-" "151" "WRITE_ACTIONS, CLEAR_ACTIONS and WRITE_METADATA are stored and do nothing; use APPLY_ACTIONS",
    /// Actions that are stored and ignored, or work otherwise.
    ActionsDiffer "-" "157 to 164" "has an action that the firmware skips or performs in another way (NORMAL, TTL, queue, MPLS, PBB, most of SET_FIELD's IPv6 and ARP)",
    /// Identical flows.
    Shadowed "37" "124" "an entry with this match and priority is there: the new one stands behind it and never counts; delete the old one first",
    /// An entry that is not the same is replaced.
    ReplacesAnother "-" "124" "replaces an entry whose match is only the beginning of its own; give the two different priorities",
    /// MODIFY without a match.
    ModifiesNothing "39" "118" "MODIFY finds no such entry and does nothing; use ADD",
    /// MODIFY with a match.
    ModifyAppends "40 to 42" "118" "MODIFY changes the first such entry only, and appends another like it; delete and add",
    /// A DELETE limited by port.
    DeleteByPort "45" "133" "DELETE by port or group: OpenFlow 1.0 deletes whatever the port is, 1.3 deletes nothing; use ANY",
    /// A DELETE that chooses others.
    DeletesOthers "44, 48, 49" "129 to 132, 135, 136" "DELETE chooses other entries than it means; delete all flows, or give each entry a cookie and its match as it was added",
    /// `FLOW_REMOVED`.
    NoticeLost "50" "134" "FLOW_REMOVED goes by the flags of the DELETE: what the entries asked for does not count, or is not all",
    /// Statistics with a filter.
    FilterIgnored "26" "101" "statistics are told of all entries, groups or tables: what the request chooses does not count; choose at the controller",
    /// Statistics that are not all.
    StatisticsCut "26" "103 to 105" "statistics leave entries out: the reply has no room for all, or takes the place of an earlier one; have fewer entries, and ask again when a reply has come",
    /// Table features.
    TableFeatures "-" "108" "TABLE_FEATURES tells of one table of ten, and sets nothing",
    /// TABLE statistics without room.
    NoRoom "-" "88" "not answered: the replies of a segment have 2048 bytes; ask in a segment of its own",
    /// `GROUP_MOD`.
    GroupDiffers "-" "167, 172" "only the first bucket of a group counts, and only its outputs; give one bucket with outputs",
    /// `GROUP_MOD` that does nothing.
    GroupIgnored "-" "169" "GROUP_MOD MODIFY, DELETE of all and unknown commands do nothing; delete each group and add it again",
    /// DELETE of a group.
    GroupStays "-" "170, 171" "entries go on sending to a deleted group, and deleting it again frees memory that is in use; delete the entries, and each group once",
    /// `METER_MOD`.
    MeterUnchecked "-" "174, 177" "accepted, though the meter limits nothing, or something else: flags, types of bands, rates and reserved ids are not checked",
    /// DELETE of a meter.
    MeterStays "-" "178" "entries of a deleted meter stay, and pass frames unmetered; delete them",
}

impl Cause {
    /// Writes what happens, and the quirk in the version of the session.
    pub(super) fn write(self, version: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of10, of13, text) = self.description();
        let quirks = if version == 4 { of13 } else { of10 };
        let s = if quirks.contains([',', ' ']) { "s" } else { "" };
        write!(f, "{text} (quirk{s} {quirks})")
    }
}
