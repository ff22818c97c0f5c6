//! A board's EEPROM as a file.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use zodiac_firmware::Board;

use live_host::error::StartError;

/// Returns the board what the file holds; without the file the board is as configured.
///
/// # Errors
/// The file cannot be read, or no board has written it. `key` says where the configuration names it.
pub fn insert(board: Board, path: &Path, key: &str) -> Result<Board, StartError> {
    let refuse = |reason: &dyn std::fmt::Display| {
        StartError::new(format!("{key}: {}: {reason}", path.display()))
    };
    match fs::read(path) {
        Ok(image) => board.with_eeprom(&image).map_err(|error| refuse(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(board),
        Err(error) => Err(refuse(&format!(
            "cannot be read: {error}; give another path"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zodiac_firmware::{Config, Profile, ZODIAC_FX};

    fn board() -> Board {
        let profile = Profile::from_toml(ZODIAC_FX).unwrap();
        Board::new(&profile, Config::default(), 0).unwrap()
    }

    #[test]
    fn a_file_counts_if_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s1.eeprom");
        assert!(insert(board(), &path, "eeprom").is_ok());
        fs::write(&path, board().eeprom()).unwrap();
        assert!(insert(board(), &path, "eeprom").is_ok());
        fs::write(&path, [0xff; 197]).unwrap();
        let line = insert(board(), &path, "board s1, eeprom")
            .unwrap_err()
            .to_string();
        assert!(
            line.starts_with("board s1, eeprom: ") && line.contains("blank"),
            "{line}"
        );
        let line = insert(board(), folder.path(), "eeprom")
            .unwrap_err()
            .to_string();
        assert!(line.contains("cannot be read"), "{line}");
    }
}
