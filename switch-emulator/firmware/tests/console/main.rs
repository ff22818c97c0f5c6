//! The serial console.

mod configuration;
mod flows;
mod keys;
mod persistence;
mod terminal;
mod time;
mod upload;
