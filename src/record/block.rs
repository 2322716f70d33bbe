//! Blocks: the pieces in which a segment is written, so that a torn one is told from a damaged one.
//!
//! A block is a zstd skippable frame of 32 bytes, then one zstd frame of whole JSON lines:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `5b 2a 4d 18`, a skippable frame |
//! | 4 | 24, its length |
//! | 4 | `KLOG` |
//! | 8 | number of the block within the run, from 1 |
//! | 4 | length of the zstd frame |
//! | 8 | XXH3-64 of the zstd frame, seeded with the number |
//!
//! All numbers are little-endian. `zstd -dc` passes over skippable frames, so a segment is read with
//! it like any packed text. A process that is killed leaves a prefix of what it wrote: at the end of
//! a segment the last block may be short. Whatever else does not add up is damage.

use std::io;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before the zstd frame.
const HEAD: usize = 32;

/// How a block begins: the magic number, the length, the mark.
const START: [u8; 12] = *b"\x5b\x2a\x4d\x18\x18\0\0\0KLOG";

/// Most bytes of a block, unpacked: far beyond the largest window.
const MAX_RAW_BYTES: u64 = 1 << 30;

/// Packs harder for little gain above this.
const LEVEL: i32 = 3;

/// A block that is whole.
pub(super) struct Block {
    /// Its number within the run.
    pub(super) number: u64,
    /// Its lines.
    pub(super) lines: Vec<u8>,
    /// Where the next one begins.
    pub(super) end: usize,
}

/// What stands at a place of a segment.
pub(super) enum Next {
    /// A block.
    Block(Block),
    /// Nothing more.
    End,
    /// A block that was not written to its end, and nothing whole after it.
    Torn,
    /// Something else, and whole blocks after it; or a whole block that cannot be unpacked.
    Damaged(String),
}

/// Whether a file begins as a segment does. The first bytes are enough.
pub(super) fn is_segment(head: &[u8]) -> bool {
    head.starts_with(&START)
}

/// Bytes of a file that [`is_segment`] needs.
pub(super) const START_BYTES: usize = START.len();

/// Packs lines into a block.
///
/// # Errors
/// The encoder runs out of memory, or the lines of 4 GiB.
pub(super) fn pack(number: u64, lines: &[u8]) -> io::Result<Vec<u8>> {
    let frame = zstd::bulk::compress(lines, LEVEL)?;
    let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
    let mut block = Vec::with_capacity(HEAD + frame.len());
    block.extend_from_slice(&START);
    block.extend_from_slice(&number.to_le_bytes());
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&xxh3_64_with_seed(&frame, number).to_le_bytes());
    block.extend_from_slice(&frame);
    Ok(block)
}

/// Reads what stands at `offset` of a segment.
pub(super) fn next(segment: &[u8], offset: usize) -> Next {
    let rest = segment.get(offset..).unwrap_or_default();
    if rest.is_empty() {
        return Next::End;
    }
    let Some((number, frame)) = whole(rest) else {
        return match resume(rest) {
            Some(later) => Next::Damaged(format!(
                "no block begins here, but whole ones follow from offset {}",
                offset + later
            )),
            None => Next::Torn,
        };
    };
    let unpacked = zstd::stream::read::Decoder::new(frame).and_then(|decoder| {
        let mut lines = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(decoder, MAX_RAW_BYTES + 1), &mut lines)?;
        Ok(lines)
    });
    match unpacked {
        Ok(lines) if lines.len() as u64 <= MAX_RAW_BYTES => Next::Block(Block {
            number,
            lines,
            end: offset + HEAD + frame.len(),
        }),
        Ok(_) => Next::Damaged(format!("a block of more than {MAX_RAW_BYTES} bytes")),
        Err(error) => Next::Damaged(format!("a block that cannot be unpacked: {error}")),
    }
}

/// The number and the zstd frame of the block that `bytes` begin with, if it is all there.
fn whole(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let head: &[u8; HEAD] = bytes.first_chunk()?;
    if !is_segment(head) {
        return None;
    }
    let number = u64::from_le_bytes(*head.get(12..20)?.first_chunk()?);
    let length = u32::from_le_bytes(*head.get(20..24)?.first_chunk()?);
    let hash = u64::from_le_bytes(*head.get(24..32)?.first_chunk()?);
    let frame = bytes.get(HEAD..HEAD.checked_add(length as usize)?)?;
    (xxh3_64_with_seed(frame, number) == hash).then_some((number, frame))
}

/// Where the next whole block begins, after the first byte.
fn resume(bytes: &[u8]) -> Option<usize> {
    let mut from = 1;
    while let Some(rest) = bytes.get(from..) {
        let at = from + rest.windows(START.len()).position(is_segment)?;
        if whole(bytes.get(at..)?).is_some() {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_blocks() -> (Vec<u8>, usize) {
        let mut bytes = pack(1, b"{\"a\":1}\n").unwrap();
        let middle = bytes.len();
        bytes.extend(pack(2, b"{\"b\":2}\n{\"c\":3}\n").unwrap());
        (bytes, middle)
    }

    #[test]
    fn every_cut_of_the_last_block_is_a_torn_tail() {
        let (bytes, middle) = two_blocks();
        for cut in middle..bytes.len() {
            let cut_bytes = &bytes[..cut];
            let Next::Block(first) = next(cut_bytes, 0) else {
                panic!("the first block is whole");
            };
            assert_eq!((first.number, first.end), (1, middle));
            let after = next(cut_bytes, middle);
            assert!(if cut == middle {
                matches!(after, Next::End)
            } else {
                matches!(after, Next::Torn)
            });
        }
    }

    #[test]
    fn every_flipped_bit_before_a_whole_block_is_damage() {
        let (bytes, middle) = two_blocks();
        for at in 0..middle {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(matches!(next(&flipped, 0), Next::Damaged(_)), "byte {at}");
        }
    }

    #[test]
    fn a_segment_is_packed_text() {
        let (bytes, _) = two_blocks();
        let text = zstd::stream::decode_all(&bytes[..]).unwrap();
        assert_eq!(text, b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    }
}
