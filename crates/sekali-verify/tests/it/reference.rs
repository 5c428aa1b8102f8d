//! Fixed signatures, computed with another implementation.

use sekali_verify::Scheme;

use crate::{NOW_MS, check_at, code, headers, secret, signed};

/// Bodies as hexadecimal text, with their signatures.
const VALUES: [(&str, &str); 8] = [
    (
        "7b22656e746974795f6964223a226f2d31222c22736f757263655f76657273696f6e223a317d",
        "900372d3e6236dbb5502c0e0b4978869530c8f27c425a2eaaa8b08c3dfc25e6b",
    ),
    (
        "",
        "2b568c998241cb19ab4a34382cf8ec7ab8060b4d84774f848eec1b03f77f6dce",
    ),
    (
        "7b22656e746974795f6964223a226f2d31227d0d0a",
        "2ac29f31b9ea59f28cf27c5c0aff2e7844ebac983eb997867767152fa34a1dc3",
    ),
    (
        "efbbbf7b22656e746974795f6964223a226f2d31227d",
        "5d8b3ee91a54b28865dd95091638090b4a72af8735628d0355cf9e18550bc8dd",
    ),
    (
        "7b2274223a22c3a9f09f9880e280a8227d",
        "59a1919a6553ff769686932d7f7cda13af412f15ce82852ac6efab70315dbca4",
    ),
    (
        "7b2274223a225c75303065395c75643833645c75646530305c7532303238227d",
        "ca6438f934d7916b9d4f7339d1579099bf624810c0e48e75a645de109800e0e7",
    ),
    (
        "7b2274223a22ff227d",
        "46b4b6042f6911eccd96c2bbaa8dc0c2ecda92a9c5ca2569840ae85f613a642b",
    ),
    (
        "1f8b0800",
        "e375c230b316f63f6df13de14ab1d7cf504f25c37777c2dc133051414c84bde3",
    ),
];

#[test]
fn every_reference_value_verifies_with_its_bytes_untouched() {
    for (body, signature) in VALUES {
        let body = hex::decode(body).unwrap();
        let headers = headers(&[
            ("x-webhook-timestamp", "1767225600"),
            ("x-webhook-signature", &format!("v1={signature}")),
        ]);
        let verified = check_at(NOW_MS, &Scheme::standard(), &headers, &body).unwrap();
        assert_eq!(verified.body(), &body);
    }
}

#[test]
fn signing_gives_the_reference_values() {
    for (body, signature) in VALUES {
        let body = hex::decode(body).unwrap();
        let headers = signed(&Scheme::standard(), &secret(), &body, NOW_MS);
        assert_eq!(headers["x-webhook-timestamp"], "1767225600");
        assert_eq!(headers["x-webhook-signature"], format!("v1={signature}"));
    }
}

#[test]
fn a_signature_does_not_move_to_another_spelling_of_the_body() {
    for (index, (_, signature)) in VALUES.iter().enumerate() {
        let other = hex::decode(VALUES[(index + 1) % VALUES.len()].0).unwrap();
        let headers = headers(&[
            ("x-webhook-timestamp", "1767225600"),
            ("x-webhook-signature", &format!("v1={signature}")),
        ]);
        let outcome = check_at(NOW_MS, &Scheme::standard(), &headers, &other);
        assert_eq!(code(&outcome), "signature_wrong");
    }
}
