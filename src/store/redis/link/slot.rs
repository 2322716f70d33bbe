//! Hash slots of Redis Cluster (its specification, "Key distribution model").

/// How many there are.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a key: of what stands between the first `{` and the next `}`, if that is something,
/// else of the whole key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&b| b == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|&b| b == b'}') {
        Some(0) | None => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM: polynomial 0x1021, nothing reflected, from 0. Keys are short: no table.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        for (key, slot) in [
            ("foo", 12_182),
            ("bar", 5_061),
            ("{user1000}.following", slot_of(b"user1000")),
            ("foo{}{bar}", crc16(b"foo{}{bar}") % SLOTS),
            ("foo{{bar}}zap", slot_of(b"{bar")),
            ("foo{bar}{zap}", 5_061),
            ("foo{bar", crc16(b"foo{bar") % SLOTS),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }
}
