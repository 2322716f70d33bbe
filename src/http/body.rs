//! Taking a body in: content type, coding, a deadline, and a limit on its inflated size.

use std::{io::Write as _, time::Duration};

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::problem::{Code, Problem};

/// Longest time in which a whole body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest silence between two pieces of a body.
const PIECE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bodies from here on are parsed off the async workers: parsing takes about 10 ns a byte.
const LONG_BODY: usize = 64 * 1024;
/// Largest window a zstd stream may ask for, as a power of two: 8 MiB a stream.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Limit of small bodies.
pub(crate) const SMALL: usize = 64 * 1024;
/// Limit of batches: 10,000 pings with every field are 4 MiB.
pub(crate) const BATCH: usize = 8 << 20;
/// Limit of whole windows with their edges.
pub(crate) const WINDOW: usize = 32 << 20;

/// A JSON body of at most `LIMIT` inflated bytes.
pub(crate) struct Json<const LIMIT: usize>(pub(crate) Value);

/// The raw bytes of a JSON body, of at most `LIMIT` inflated bytes.
pub(crate) struct JsonBytes<const LIMIT: usize>(pub(crate) Vec<u8>);

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for Json<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let JsonBytes(bytes) = JsonBytes::<LIMIT>::from_request(request, state).await?;
        parse(bytes).await.map(Self)
    }
}

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for JsonBytes<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match media_type(request.headers()).as_str() {
            "application/json" | "application/merge-patch+json" => {}
            _ => {
                return Err(Problem::new(
                    Code::UnsupportedMediaType,
                    "send Content-Type: application/json",
                ));
            }
        }
        inflate(request, LIMIT, |_| Ok(())).await.map(Self)
    }
}

/// Parses a JSON text, off the async workers when it is long.
pub(crate) async fn parse(text: Vec<u8>) -> Result<Value, Problem> {
    if text.len() < LONG_BODY {
        return parse_now(&text);
    }
    off_the_workers(move || parse_now(&text)).await?
}

pub(crate) fn parse_now(text: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(text).map_err(|error| {
        let detail = if text.is_empty() {
            "the body is empty".into()
        } else {
            format!("the body is not JSON: {error}")
        };
        Problem::new(Code::Malformed, detail)
    })
}

/// Runs work that takes long on a thread that may be blocked.
pub(crate) async fn off_the_workers<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Problem::internal(&error))
}

/// The media type without its parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let value = value.unwrap_or_default();
    let name = value.split(';').next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

/// Reads a body to its end, inflating it, and hands over what there is whenever more has come.
/// `take` takes from the front as much as it can use; what it leaves at the end is given back.
pub(crate) async fn inflate(
    request: Request,
    limit: usize,
    mut take: impl FnMut(&mut Vec<u8>) -> Result<(), Problem>,
) -> Result<Vec<u8>, Problem> {
    let mut inflating = Inflating::new(request.headers(), limit)?;
    let mut body = request.into_body();
    let reading = async {
        loop {
            let frame = match tokio::time::timeout(PIECE_TIMEOUT, body.frame()).await {
                Err(_) => return Err(late()),
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    let detail = format!("the body broke off: {error}");
                    return Err(Problem::new(Code::Malformed, detail));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            if let Some(data) = frame.data_ref() {
                inflating.push(data)?;
                take(inflating.inflated())?;
            }
        }
        inflating.finish()?;
        Ok(std::mem::take(inflating.inflated()))
    };
    tokio::time::timeout(BODY_TIMEOUT, reading)
        .await
        .unwrap_or_else(|_| Err(late()))
}

fn late() -> Problem {
    Problem::new(Code::BodyTimeout, "the body did not arrive in time")
}

/// A body that is being inflated. Never holds more than the limit.
enum Inflating {
    Plain(Capped),
    Gzip(Box<flate2::write::MultiGzDecoder<Capped>>),
    Zstd(Box<zstd::stream::zio::Writer<Capped, zstd::stream::raw::Decoder<'static>>>),
}

impl Inflating {
    fn new(headers: &HeaderMap, limit: usize) -> Result<Self, Problem> {
        let length = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok());
        if length
            .and_then(|text| text.parse().ok())
            .is_some_and(|bytes: u64| bytes > limit as u64)
        {
            return Err(over(limit));
        }
        let capped = Capped {
            bytes: Vec::new(),
            room: limit,
            limit,
        };
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let coding = codings.next().map_or(Ok("identity"), |value| {
            value.to_str().map(str::trim).map_err(|_| unknown_coding())
        })?;
        if codings.next().is_some() {
            return Err(unknown_coding());
        }
        match coding.to_ascii_lowercase().as_str() {
            "identity" => Ok(Self::Plain(capped)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(flate2::write::MultiGzDecoder::new(
                capped,
            )))),
            "zstd" => {
                let broken = |error: std::io::Error| Problem::internal(&error);
                let mut decoder = zstd::stream::raw::Decoder::new().map_err(broken)?;
                decoder
                    .set_parameter(zstd::stream::raw::DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
                    .map_err(broken)?;
                let writer = zstd::stream::zio::Writer::new(capped, decoder);
                Ok(Self::Zstd(Box::new(writer)))
            }
            _ => Err(unknown_coding()),
        }
    }

    fn push(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let written = match self {
            Self::Plain(capped) => capped.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
            Self::Zstd(decoder) => decoder.write_all(piece),
        };
        written.map_err(|error| self.failed(&error))
    }

    fn finish(&mut self) -> Result<(), Problem> {
        let finished = match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            // a frame that ends early is an error here, as in gzip
            Self::Zstd(decoder) => decoder.finish(),
        };
        finished.map_err(|error| self.failed(&error))
    }

    fn inflated(&mut self) -> &mut Vec<u8> {
        &mut self.capped().bytes
    }

    fn capped(&mut self) -> &mut Capped {
        match self {
            Self::Plain(capped) => capped,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.writer_mut(),
        }
    }

    fn failed(&mut self, error: &std::io::Error) -> Problem {
        if error.kind() == std::io::ErrorKind::QuotaExceeded {
            return over(self.capped().limit);
        }
        Problem::new(
            Code::Malformed,
            format!("the body cannot be inflated: {error}"),
        )
    }
}

fn over(limit: usize) -> Problem {
    Problem::too_large(format!("the body has more than {limit} bytes"))
}

fn unknown_coding() -> Problem {
    Problem::new(
        Code::UnsupportedMediaType,
        "a body is plain, or has one of the content codings gzip and zstd",
    )
}

/// Bytes up to a limit, counted over the whole body.
struct Capped {
    bytes: Vec<u8>,
    room: usize,
    limit: usize,
}

impl std::io::Write for Capped {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        match self.room.checked_sub(piece.len()) {
            None => Err(std::io::ErrorKind::QuotaExceeded.into()),
            Some(room) => {
                self.room = room;
                self.bytes.extend_from_slice(piece);
                Ok(piece.len())
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    async fn read(coding: &str, body: Vec<u8>, limit: usize) -> Result<Vec<u8>, Problem> {
        let request = Request::builder()
            .header(header::CONTENT_ENCODING, coding)
            .body(Body::from(body))
            .unwrap();
        inflate(request, limit, |_| Ok(())).await
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn bodies_are_inflated_up_to_their_limit_and_no_further() {
        let text = b"hello ".repeat(1000);
        let zstd = zstd::encode_all(&text[..], 3).unwrap();
        for (coding, body) in [
            ("identity", text.clone()),
            ("GZIP", gzip(&text)),
            ("zstd", zstd),
        ] {
            assert_eq!(
                read(coding, body.clone(), 6000).await.unwrap(),
                text,
                "{coding}"
            );
            let over = read(coding, body, 5999).await.unwrap_err();
            assert_eq!(over.code(), Code::TooLarge, "{coding}");
        }
        let bomb = gzip(&vec![0; 50 << 20]);
        assert!(bomb.len() < 60_000);
        assert_eq!(
            read("gzip", bomb, 1 << 20).await.unwrap_err().code(),
            Code::TooLarge
        );
    }

    #[tokio::test]
    async fn broken_and_unknown_codings_are_told_apart() {
        let cut = gzip(b"hello")[..12].to_vec();
        assert_eq!(
            read("gzip", cut, 100).await.unwrap_err().code(),
            Code::Malformed
        );
        let whole = zstd::encode_all(&b"hello ".repeat(1000)[..], 3).unwrap();
        for kept in 1..whole.len() {
            let cut = read("zstd", whole[..kept].to_vec(), 6000).await;
            assert_eq!(cut.unwrap_err().code(), Code::Malformed, "{kept} bytes");
        }
        let odd = read("br", Vec::new(), 100).await.unwrap_err();
        assert_eq!(odd.code(), Code::UnsupportedMediaType);
    }
}
