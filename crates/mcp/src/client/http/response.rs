//! Bounded reading of responses, and errors without the URL, which may contain secrets.

use futures::stream::{BoxStream, Stream, StreamExt};
use reqwest::StatusCode;
use reqwest::header::WWW_AUTHENTICATE;

use crate::client::shown;

/// The challenge of a refused request, if there is one.
pub(super) fn challenge_of(response: &reqwest::Response) -> Option<String> {
    let is_refusal = matches!(
        response.status(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    );
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
    // There may be several challenges.
    let is_bearer = |challenge: &&&str| challenge.to_ascii_lowercase().starts_with("bearer");
    let challenge = challenges.iter().find(is_bearer).or(challenges.first())?;
    is_refusal.then(|| (*challenge).to_owned())
}

/// Describes an error without the URL, which may contain secrets.
pub(super) fn describe_error(error: &reqwest::Error) -> String {
    let mut causes = vec![match () {
        () if error.is_connect() => "cannot connect".to_owned(),
        () if error.is_timeout() => "timed out".to_owned(),
        () => "the connection was lost".to_owned(),
    }];
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        causes.push(shown(&cause.to_string(), 200));
        source = cause.source();
    }
    causes.join(": ")
}

/// Reads a whole body. `None` if it is larger than `most` bytes.
pub(super) async fn read(
    mut response: reqwest::Response,
    most: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// The bytes of an event stream. Fails at an event larger than `most` bytes.
pub(in crate::client) fn bounded<Piece: AsRef<[u8]> + Send + 'static>(
    pieces: impl Stream<Item = Result<Piece, reqwest::Error>> + Send + 'static,
    most: usize,
) -> BoxStream<'static, Result<Piece, std::io::Error>> {
    let (mut event_bytes, mut line_bytes) = (0usize, 0usize);
    let bounded = pieces.map(move |piece| {
        let piece = piece.map_err(|error| std::io::Error::other(describe_error(&error)))?;
        for &byte in piece.as_ref() {
            event_bytes += 1;
            match byte {
                b'\n' if line_bytes == 0 => event_bytes = 0,
                b'\n' => line_bytes = 0,
                b'\r' => {}
                _ => line_bytes += 1,
            }
            if event_bytes > most {
                let message = format!("an event is larger than {most} bytes");
                return Err(std::io::Error::other(message));
            }
        }
        Ok(piece)
    });
    bounded.boxed()
}
