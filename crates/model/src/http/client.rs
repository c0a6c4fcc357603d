//! The HTTP client: made on first use, and no dearer than its base URL needs.
//!
//! Certificate roots are only read when some connection may be encrypted. Proxies come from the usual variables
//! (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, in capitals or small letters). Redirects are not followed:
//! a POST with a key must not wander.

use std::error::Error as StdError;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, Url};

use super::Protocol;

/// A client for one base URL.
#[derive(Debug, Default)]
pub(crate) struct LazyClient {
    client: OnceLock<Result<Client, String>>,
}

impl LazyClient {
    /// The client, made on the first call. `Err` says why there is none and what to do.
    pub(crate) fn get(&self, url: &Url, connect_timeout_ms: u64) -> Result<&Client, String> {
        let made = self.client.get_or_init(|| {
            let roots = if may_encrypt(url, |name| std::env::var(name).ok()) {
                native_roots()?
            } else {
                rustls::RootCertStore::empty()
            };
            client(roots, connect_timeout_ms)
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// Whether a request to `url` may need certificates: of the server, or of an encrypted proxy.
fn may_encrypt(url: &Url, env: impl Fn(&str) -> Option<String>) -> bool {
    let proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    url.scheme() == "https"
        || proxies.iter().filter_map(|name| env(name)).any(|proxy| proxy.starts_with("https:"))
}

fn native_roots() -> Result<rustls::RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = rustls::RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let cause = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!(
            "no certificate roots were found{cause}: install the system's CA certificates or name a file of them in \
             SSL_CERT_FILE"
        ));
    }
    Ok(roots)
}

fn client(roots: rustls::RootCertStore, connect_timeout_ms: u64) -> Result<Client, String> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_millis(connect_timeout_ms))
        .build()
        .map_err(|error| format!("the HTTP client cannot be set up: {}", causes(&error)))
}

/// Where a protocol's requests go, or why the base URL cannot be used.
pub(crate) fn endpoint<P: Protocol>(base_url: &str) -> Result<Url, String> {
    let wrong =
        |why: &str| format!("the base URL \"{base_url}\" {why}; it should look like https://host/path");
    let base = Url::parse(base_url).map_err(|error| wrong(&format!("is not a URL ({error})")))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(wrong("is neither http nor https"));
    }
    let base = base_url.trim_end_matches('/');
    Url::parse(&format!("{base}{}", P::path(base))).map_err(|error| wrong(&format!("is not a URL ({error})")))
}

/// A URL for people: without what may be secret in it.
pub(crate) fn shown_url(url: &Url) -> String {
    let mut url = url.clone();
    // Both only fail for URLs without a host, which carry no credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// What went wrong on the way to the server, and what to do when that is known.
pub(crate) fn transport_message(error: reqwest::Error, url: &Url) -> String {
    let error = error.without_url();
    let place = shown_url(url);
    // The outermost error only says that a request was sent.
    let said = error.source().map_or_else(|| causes(&error), causes);
    if let Some(refusal) = refusal(&error) {
        return format!(
            "nothing answers at {place}: check the base URL and that the server runs ({refusal})"
        );
    }
    if said.contains("certificate") {
        return format!(
            "no trusted connection to {place}: {said} (name a file with the right CA certificates in SSL_CERT_FILE)"
        );
    }
    match error.is_connect() {
        true => format!("no connection to {place}: check the base URL and the network ({said})"),
        false => format!("the connection to {place} failed: {said}"),
    }
}

fn refusal<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a io::Error> {
    let mut causes = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.find(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

/// An error and its causes in one line, each said once.
fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in chain(error) {
        let text = cause.to_string();
        if !said.iter().any(|earlier| earlier.contains(&text)) {
            said.push(text);
        }
    }
    said.join(": ")
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Chat;

    #[test]
    fn appends_the_path_to_the_base_url_as_it_is() {
        let url = |base| endpoint::<Chat>(base).map(|url| url.to_string());
        assert_eq!(url("https://h").as_deref(), Ok("https://h/chat/completions"));
        assert_eq!(url("http://h:1/v1/").as_deref(), Ok("http://h:1/v1/chat/completions"));
        for bad in ["", "h", "ftp://h", "http://", "not a url"] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hides_what_may_be_secret_in_a_url() {
        let url = Url::parse("https://me:pw@h/a?token=1#x").unwrap();
        assert_eq!(shown_url(&url), "https://h/a");
    }

    #[test]
    fn needs_roots_only_where_something_is_encrypted() {
        let http = Url::parse("http://h/").unwrap();
        let https = Url::parse("https://h/").unwrap();
        assert!(may_encrypt(&https, |_| None));
        assert!(!may_encrypt(&http, |_| None));
        assert!(!may_encrypt(&http, |_| Some("http://proxy".into())));
        assert!(may_encrypt(&http, |name| (name == "all_proxy").then(|| "https://proxy".into())));
    }

    #[test]
    fn makes_a_client_without_roots() {
        assert!(client(rustls::RootCertStore::empty(), 1000).is_ok());
    }
}
