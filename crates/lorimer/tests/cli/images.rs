//! Images for the model.

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, say};

/// A PNG of one pixel.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0,
    1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0, 1, 0,
    0, 5, 0, 1, 0x0d, 0x0a, 0x2d, 0xb4, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

fn first_user_content(server: &Server) -> Value {
    let request = server.requests().into_iter().next_back().expect("a request");
    let messages = request["messages"].as_array().expect("messages");
    messages.iter().find(|message| message["role"] == "user").expect("a user message")["content"].clone()
}

#[test]
fn a_model_that_takes_images_gets_the_bytes_and_another_a_placeholder() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("a dot"), say("still a dot")]));
    lab.put("dot.png", PNG);
    let image = lab.workspace().join("dot.png").display().to_string();
    lab.run(&server, &["-m", "deepseek/deepseek-v4-flash-vision-exp", "--image", &image, "what is it?"])
        .end()
        .answer();
    let content = first_user_content(&server);
    let url =
        content[content.as_array().expect("parts").len() - 1]["image_url"]["url"].as_str().expect("an image");
    assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
    let logged = lab.log();
    let block = &logged.of("user/message")[0]["content"][1];
    assert_eq!((&block["type"], &block["attachment"]["width"]), (&json!("image"), &json!(1)));
    assert!(!std::fs::read_to_string(&lab.logs()[0].path).expect("the log").contains("iVBORw0KGgo"));

    lab.run(&server, &["--continue", "and now?"]).end().answer();
    let text = first_user_content(&server);
    assert!(
        text.as_str()
            .is_some_and(|text| text.contains("[image omitted because this model accepts text only")),
        "{text}"
    );
}

#[test]
fn what_is_no_image_is_refused() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("never")]));
    lab.put("notes.txt", "words");
    let file = lab.workspace().join("notes.txt").display().to_string();
    let ended = lab.run(&server, &["--image", &file, "go"]).end();
    assert!(ended.complaint(2).contains("it is no PNG, JPEG, WebP or GIF image"));
    assert!(server.requests().is_empty());
}
