//! Commands of the context `openflow`.

use super::flows::show_flows;
use super::iteration::ConsoleIteration;
use super::Console;
use crate::openflow::ConnectionState;
use crate::settings::Settings;

impl Console {
    pub(super) fn openflow_command(
        settings: &mut Settings,
        words: &[&str],
        iteration: &mut ConsoleIteration,
    ) -> bool {
        match words {
            ["show", "status"] => show_status(iteration),
            ["show", "tables"] => show_tables(iteration),
            ["show", "flows"] => show_flows(iteration),
            // Both belong to OpenFlow 1.3, and are always shown empty (`docs/console.md`).
            ["show", "meters"] => iteration.line("No meters installed"),
            ["show", "groups"] => iteration.line("No groups installed"),
            ["enable"] => enable(settings, true, iteration),
            ["disable"] => enable(settings, false, iteration),
            ["clear", "flows"] => {
                let count = iteration.agent.clear_flows();
                iteration.line(&format!("{count} flow(s) deleted"));
            }
            _ => return false,
        }
        true
    }
}

fn enable(settings: &mut Settings, enabled: bool, iteration: &mut ConsoleIteration) {
    settings.openflow_enabled = enabled;
    let now = iteration.reached();
    iteration.agent.set_enabled(now, enabled, iteration.out);
    let state = if enabled { "Enabled" } else { "Disabled" };
    iteration.line(&format!("OpenFlow {state}"));
}

fn show_status(iteration: &mut ConsoleIteration) {
    let state = match iteration.agent.connection_state() {
        ConnectionState::Connected => "Connected",
        ConnectionState::Disconnected => "Disconnected",
        ConnectionState::Disabled => "Disabled",
    };
    iteration.rule();
    iteration.line("OpenFlow Status");
    iteration.line(&format!(" Status: {state}"));
    let version = match iteration.agent.version() {
        0 => None,
        1 => Some("1.0 (0x01)"),
        _ => Some("1.3 (0x04)"),
    };
    if let Some(version) = version {
        iteration.line(&format!(" Version: {version}"));
        iteration.line(" No tables: 1");
        show_counts(iteration);
    }
    iteration.rule();
}

fn show_tables(iteration: &mut ConsoleIteration) {
    if iteration.agent.table().count() == 0 {
        return iteration.line("No flows installed");
    }
    iteration.rule();
    iteration.line("Table: 0");
    show_counts(iteration);
    let bytes = iteration.agent.table().bytes();
    iteration.line(&format!(" Bytes: {bytes}"));
    iteration.rule();
}

fn show_counts(iteration: &mut ConsoleIteration) {
    let table = iteration.agent.table();
    let (flows, lookups, matched) = (table.count(), table.lookups(), table.matched());
    iteration.line(&format!(" Flows: {flows}"));
    iteration.line(&format!(" Lookups: {lookups}"));
    iteration.line(&format!(" Matches: {matched}"));
}
