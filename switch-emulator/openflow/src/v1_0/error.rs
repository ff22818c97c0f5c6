//! Errors (`ofp_error_type`): type and code.
#![allow(missing_docs)] // the standard's names

use crate::ErrorCode;

pub const HELLO_FAILED: ErrorCode = (0, 0);
pub const BAD_VERSION: ErrorCode = (1, 0);
pub const BAD_TYPE: ErrorCode = (1, 1);
pub const BAD_STATISTICS: ErrorCode = (1, 2);
pub const BAD_VENDOR: ErrorCode = (1, 3);
pub const NOT_PERMITTED: ErrorCode = (1, 5);
pub const BAD_LENGTH: ErrorCode = (1, 6);
pub const BUFFER_UNKNOWN: ErrorCode = (1, 8);
pub const BAD_ACTION_TYPE: ErrorCode = (2, 0);
pub const BAD_ACTION_LENGTH: ErrorCode = (2, 1);
pub const BAD_ACTION_VENDOR: ErrorCode = (2, 2);
pub const BAD_OUT_PORT: ErrorCode = (2, 4);
pub const TOO_MANY_ACTIONS: ErrorCode = (2, 7);
pub const BAD_ACTION_QUEUE: ErrorCode = (2, 8);
pub const ALL_TABLES_FULL: ErrorCode = (3, 0);
pub const OVERLAP: ErrorCode = (3, 1);
pub const BAD_COMMAND: ErrorCode = (3, 4);
pub const UNSUPPORTED: ErrorCode = (3, 5);
pub const BAD_PORT: ErrorCode = (4, 0);
pub const BAD_PORT_ADDRESS: ErrorCode = (4, 1);
