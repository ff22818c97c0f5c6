//! Commands of the context `openflow`.

use super::flows::show_flows;
use super::turn::Turn;
use super::Console;
use crate::openflow::ConnectionState;
use crate::settings::Settings;

impl Console {
    pub(super) fn openflow_command(
        settings: &mut Settings,
        words: &[&str],
        turn: &mut Turn,
    ) -> bool {
        match words {
            ["show", "status"] => show_status(turn),
            ["show", "tables"] => show_tables(turn),
            ["show", "flows"] => show_flows(turn),
            // Both belong to OpenFlow 1.3, and are always shown empty (`docs/console.md`).
            ["show", "meters"] => turn.line("No meters installed"),
            ["show", "groups"] => turn.line("No groups installed"),
            ["enable"] => enable(settings, true, turn),
            ["disable"] => enable(settings, false, turn),
            ["clear", "flows"] => {
                let count = turn.agent.clear_flows();
                turn.line(&format!("{count} flow(s) deleted"));
            }
            _ => return false,
        }
        true
    }
}

fn enable(settings: &mut Settings, enabled: bool, turn: &mut Turn) {
    settings.openflow_enabled = enabled;
    let now = turn.reached();
    turn.agent.set_enabled(now, enabled, turn.out);
    let state = if enabled { "Enabled" } else { "Disabled" };
    turn.line(&format!("OpenFlow {state}"));
}

fn show_status(turn: &mut Turn) {
    let state = match turn.agent.connection_state() {
        ConnectionState::Connected => "Connected",
        ConnectionState::Disconnected => "Disconnected",
        ConnectionState::Disabled => "Disabled",
    };
    turn.rule();
    turn.line("OpenFlow Status");
    turn.line(&format!(" Status: {state}"));
    let version = match turn.agent.version() {
        0 => None,
        1 => Some("1.0 (0x01)"),
        _ => Some("1.3 (0x04)"),
    };
    if let Some(version) = version {
        turn.line(&format!(" Version: {version}"));
        turn.line(" No tables: 1");
        show_counts(turn);
    }
    turn.rule();
}

fn show_tables(turn: &mut Turn) {
    if turn.agent.table().count() == 0 {
        return turn.line("No flows installed");
    }
    turn.rule();
    turn.line("Table: 0");
    show_counts(turn);
    let bytes = turn.agent.table().bytes();
    turn.line(&format!(" Bytes: {bytes}"));
    turn.rule();
}

fn show_counts(turn: &mut Turn) {
    let table = turn.agent.table();
    let (flows, lookups, matched) = (table.count(), table.lookups(), table.matched());
    turn.line(&format!(" Flows: {flows}"));
    turn.line(&format!(" Lookups: {lookups}"));
    turn.line(&format!(" Matches: {matched}"));
}
