//! What bytes are that are not UTF-8 text. Guesses, for the words of an error only.

use encoding_rs::{BIG5, DecoderResult, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1251};

/// A NUL among this many first bytes makes a file binary.
pub(crate) const NOT_TEXT_SNIFF_BYTES: usize = 8192;

/// How much of a file a guess looks at, in bytes.
const SAMPLE_BYTES: usize = 4096;

/// A guess is made from this share of plausible characters on.
const PLAUSIBLE_SHARE: f64 = 0.8;

/// Korean letters are common Chinese ones in other bytes; fewer than this many do not tell.
const MIN_KOREAN_PAIRS: usize = 8;

/// What has a signature has an invalid byte this early, if any.
const SIGNED_BYTES: usize = 64;

/// First bytes of well-known kinds of files.
const SIGNATURES: [(&[u8], &str); 16] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or a document made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"\x7fELF", "an ELF executable or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O executable or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a universal Mach-O file"),
    (b"MZ", "a Windows executable or library"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "Ogg media"),
];

/// What a file with NUL bytes is, in words for a parenthesis.
pub(crate) fn describe_binary(head: &[u8]) -> String {
    if let Some(name) = utf16_by_mark(head).or_else(|| utf16_by_zeros(head)) {
        return convert_first(name);
    }
    SIGNATURES
        .iter()
        .find(|(signature, _)| head.starts_with(signature))
        .map_or("it has NUL bytes", |(_, name)| name)
        .to_owned()
}

/// What text with an invalid byte at `bad` is, in words for a parenthesis; `None` when nothing fits.
pub(crate) fn describe_invalid(bytes: &[u8], bad: usize) -> Option<String> {
    let signature = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature));
    if let Some((_, name)) = signature.filter(|_| bad < SIGNED_BYTES) {
        return Some((*name).to_owned());
    }
    let line = memchr::memrchr(b'\n', &bytes[..bad]).map_or(0, |at| at + 1);
    let start = line.max(bad.saturating_sub(SAMPLE_BYTES / 2));
    let sample = &bytes[start..bytes.len().min(start + SAMPLE_BYTES)];
    utf16_by_mark(bytes).or_else(|| likely_encoding(sample)).map(convert_first)
}

fn convert_first(encoding: &str) -> String {
    format!("looks like {encoding} text; convert it to UTF-8 first")
}

fn utf16_by_mark(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] => Some("UTF-32LE"),
        [0xff, 0xfe, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] => Some("UTF-16BE"),
        _ => None,
    }
}

/// ASCII letters as UTF-16 are NUL in every other byte.
fn utf16_by_zeros(head: &[u8]) -> Option<&'static str> {
    let (mut even, mut odd, mut pairs) = (0, 0, 0);
    for pair in head.chunks_exact(2).take(SAMPLE_BYTES) {
        pairs += 1;
        even += usize::from(pair[0] == 0 && pair[1] != 0);
        odd += usize::from(pair[1] == 0 && pair[0] != 0);
    }
    let most = |count: usize| pairs > 1 && count * 10 >= pairs * 7;
    match () {
        () if most(odd) && even == 0 => Some("UTF-16LE"),
        () if most(even) && odd == 0 => Some("UTF-16BE"),
        () => None,
    }
}

fn likely_encoding(sample: &[u8]) -> Option<&'static str> {
    let korean = if pairs(sample).count() >= MIN_KOREAN_PAIRS { share(sample, is_korean) } else { 0.0 };
    let mut guesses = [
        ("EUC-KR", decodes(EUC_KR, sample), korean),
        ("GBK", decodes(GBK, sample), share(sample, is_common_chinese)),
        ("Shift_JIS", decodes(SHIFT_JIS, sample), shift_jis_share(sample)),
        ("EUC-JP", decodes(EUC_JP, sample), euc_jp_share(sample)),
        ("Big5", decodes(BIG5, sample), share(sample, is_common_big5)),
        ("windows-1251", decodes(WINDOWS_1251, sample), cyrillic_share(sample)),
        ("Latin-1", true, latin_share(sample)),
    ];
    // The sort is stable: of equals the earlier stays first.
    guesses.sort_by(|a, b| b.2.total_cmp(&a.2));
    guesses.iter().find(|(_, fits, share)| *fits && *share >= PLAUSIBLE_SHARE).map(|(name, _, _)| *name)
}

fn decodes(encoding: &'static Encoding, sample: &[u8]) -> bool {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let Some(room) = decoder.max_utf8_buffer_length_without_replacement(sample.len()) else {
        return false;
    };
    let mut text = String::with_capacity(room);
    // The sample may end inside a character, so this is never the last piece.
    let (result, _) = decoder.decode_to_string_without_replacement(sample, &mut text, false);
    matches!(result, DecoderResult::InputEmpty)
}

/// The two-byte characters of a double-byte encoding.
fn pairs(sample: &[u8]) -> impl Iterator<Item = (u8, u8)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += sample[at.min(sample.len())..].iter().position(|byte| *byte >= 0x80)?;
        let pair = (sample[at], *sample.get(at + 1)?);
        at += 2;
        Some(pair)
    })
}

fn share(sample: &[u8], is_plausible: impl Fn(u8, u8) -> bool) -> f64 {
    let (mut good, mut all) = (0_u32, 0_u32);
    for (lead, trail) in pairs(sample) {
        all += 1;
        good += u32::from(is_plausible(lead, trail));
    }
    if all == 0 { 0.0 } else { f64::from(good) / f64::from(all) }
}

fn is_common_chinese(lead: u8, trail: u8) -> bool {
    matches!(lead, 0xb0..=0xd7 | 0xa1 | 0xa3) && trail >= 0xa1
}

fn is_korean(lead: u8, trail: u8) -> bool {
    matches!(lead, 0xb0..=0xc8 | 0xa1) && trail >= 0xa1
}

fn is_common_big5(lead: u8, trail: u8) -> bool {
    matches!(lead, 0xa1..=0xc6) && matches!(trail, 0x40..=0x7e | 0xa1..=0xfe)
}

/// Japanese text has kana in it; Chinese text read as Japanese has none.
fn euc_jp_share(sample: &[u8]) -> f64 {
    if share(sample, |lead, _| matches!(lead, 0xa4 | 0xa5)) < 0.2 {
        return 0.0;
    }
    share(sample, |lead, trail| matches!(lead, 0xa1 | 0xa3..=0xa5 | 0xb0..=0xf4) && trail >= 0xa1)
}

fn shift_jis_share(sample: &[u8]) -> f64 {
    if share(sample, |lead, _| matches!(lead, 0x82 | 0x83)) < 0.2 {
        return 0.0;
    }
    share(sample, |lead, _| matches!(lead, 0x81..=0x83 | 0x88..=0x97))
}

/// Cyrillic text is mostly small letters, which are the highest bytes.
fn cyrillic_share(sample: &[u8]) -> f64 {
    let high: Vec<u8> = sample.iter().copied().filter(|byte| *byte >= 0x80).collect();
    let small = high.iter().filter(|byte| **byte >= 0xe0).count();
    let letters = high.iter().filter(|byte| **byte >= 0xc0 || matches!(byte, 0xa8 | 0xb8)).count();
    let runs = sample.windows(3).any(|three| three.iter().all(|byte| *byte >= 0xc0));
    if high.is_empty() || !runs || small * 10 < high.len() * 6 {
        return 0.0;
    }
    letters as f64 / high.len() as f64
}

/// Western text has single high bytes between ASCII letters.
fn latin_share(sample: &[u8]) -> f64 {
    let is_letter =
        |at: Option<usize>| at.and_then(|at| sample.get(at)).is_some_and(|byte| byte.is_ascii_alphabetic());
    let (mut good, mut all) = (0_u32, 0_u32);
    for (at, byte) in sample.iter().enumerate().filter(|(_, byte)| **byte >= 0x80) {
        all += 1;
        let touches_letter = is_letter(at.checked_sub(1)) || is_letter(Some(at + 1));
        let is_plausible = match byte {
            0xd7 | 0xf7 | 0x81 | 0x8d | 0x8f | 0x90 | 0x9d => false,
            0xc0..=0xff => touches_letter,
            _ => true,
        };
        good += u32::from(is_plausible);
    }
    if all == 0 { 0.0 } else { f64::from(good) / f64::from(all) }
}

#[cfg(test)]
mod tests {
    use encoding_rs::WINDOWS_1252;

    use super::*;

    fn guess(encoding: &'static Encoding, text: &str) -> Option<String> {
        let (bytes, _, failed) = encoding.encode(text);
        assert!(!failed);
        let bad = std::str::from_utf8(&bytes).unwrap_err().valid_up_to();
        describe_invalid(&bytes, bad)
    }

    #[test]
    fn encodings_are_named() {
        for (encoding, text, name) in [
            (GBK, "const x = 1;\n// 中文注释\n", "GBK"),
            (GBK, "请先阅读配置文件，然后再修改默认的设置。", "GBK"),
            (SHIFT_JIS, "// これは日本語のコメントです\n", "Shift_JIS"),
            (EUC_JP, "// これは日本語のコメントです\n", "EUC-JP"),
            (EUC_KR, "// 이 함수는 설정 파일을 읽고 값을 돌려줍니다\n", "EUC-KR"),
            (BIG5, "這個函式會讀取設定檔案並且傳回結果", "Big5"),
            (WINDOWS_1251, "// Читает настройки из файла\n", "windows-1251"),
            (WINDOWS_1252, "const x = 1;\n// café, naïve\n", "Latin-1"),
        ] {
            let text = guess(encoding, text);
            assert_eq!(text, Some(format!("looks like {name} text; convert it to UTF-8 first")));
        }
    }

    #[test]
    fn noise_is_not_named() {
        assert_eq!(describe_invalid(b"ok \x80\x81\xff\xfe\xfd\x90", 3), None);
        assert_eq!(describe_invalid(b"\xff", 0), None);
        assert_eq!(describe_invalid(b"\xff\xd8\xff\xe0", 0).as_deref(), Some("a JPEG image"));
    }

    #[test]
    fn binaries_are_named() {
        assert_eq!(describe_binary(b"\xff\xfea\0"), "looks like UTF-16LE text; convert it to UTF-8 first");
        assert_eq!(describe_binary(b"\xfe\xff\0a"), "looks like UTF-16BE text; convert it to UTF-8 first");
        assert_eq!(describe_binary(b"i\0n\0t\0;\0"), "looks like UTF-16LE text; convert it to UTF-8 first");
        assert_eq!(describe_binary(b"\0i\0n\0t"), "looks like UTF-16BE text; convert it to UTF-8 first");
        assert_eq!(describe_binary(b"\x89PNG\r\n\x1a\n\0"), "a PNG image");
        assert_eq!(describe_binary(b"head\n\0\0\0\ntail\n"), "it has NUL bytes");
    }
}
