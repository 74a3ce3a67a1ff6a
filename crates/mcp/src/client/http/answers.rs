//! Reading what came back: never more than is allowed, and never showing the address, which may hold
//! secrets.

use futures::stream::{BoxStream, Stream, StreamExt};
use reqwest::StatusCode;
use reqwest::header::WWW_AUTHENTICATE;

use crate::client::shown;

/// What a refusal says one would need, if it says.
pub(super) fn challenge_of(response: &reqwest::Response) -> Option<String> {
    let is_refusal = matches!(
        response.status(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    );
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
    // It may say more than one way.
    let is_bearer = |challenge: &&&str| challenge.to_ascii_lowercase().starts_with("bearer");
    let challenge = challenges.iter().find(is_bearer).or(challenges.first())?;
    is_refusal.then(|| (*challenge).to_owned())
}

/// An error without the address, which may hold secrets.
pub(super) fn told(error: &reqwest::Error) -> String {
    let mut sentences = vec![match () {
        () if error.is_connect() => "it cannot be connected with".to_owned(),
        () if error.is_timeout() => "it takes too long".to_owned(),
        () => "the connection broke off".to_owned(),
    }];
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        sentences.push(shown(&cause.to_string(), 200));
        source = cause.source();
    }
    sentences.join(": ")
}

/// Reads a whole answer; `None` if it is larger than allowed.
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

/// The bytes of events, up to one that is too large.
pub(super) fn bounded<Piece: AsRef<[u8]> + Send + 'static>(
    pieces: impl Stream<Item = Result<Piece, reqwest::Error>> + Send + 'static,
    most: usize,
) -> BoxStream<'static, Result<Piece, std::io::Error>> {
    let (mut of_event, mut of_line) = (0usize, 0usize);
    let bounded = pieces.map(move |piece| {
        let piece = piece.map_err(|error| std::io::Error::other(told(&error)))?;
        for &byte in piece.as_ref() {
            of_event += 1;
            match byte {
                b'\n' if of_line == 0 => of_event = 0,
                b'\n' => of_line = 0,
                b'\r' => {}
                _ => of_line += 1,
            }
            if of_event > most {
                let message = format!("an event is larger than {most} bytes");
                return Err(std::io::Error::other(message));
            }
        }
        Ok(piece)
    });
    bounded.boxed()
}
