//! Writes XML: elements in order, with their text escaped.

use quick_xml::escape::escape;

/// The beginning of every XML body.
const DECLARATION: &str = "<?xml version='1.0' encoding='UTF-8'?>";

/// A body that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    out: String,
    open: Vec<&'static str>,
}

impl Writer {
    /// Begins a body whose root element has this name and namespace; an empty namespace is not written.
    pub(super) fn new(root: &'static str, namespace: &str) -> Self {
        let namespace = if namespace.is_empty() { String::new() } else { format!(" xmlns=\"{namespace}\"") };
        Self { out: format!("{DECLARATION}<{root}{namespace}>"), open: vec![root] }
    }

    /// Opens an element.
    pub(super) fn open(&mut self, name: &'static str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
        self.open.push(name);
    }

    /// Opens an element with the attribute `type`.
    pub(super) fn open_sort(&mut self, name: &'static str, sort: &str) {
        self.out.push_str(&format!("<{name} type=\"{}\">", escape(sort)));
        self.open.push(name);
    }

    /// A body that is one element with a text.
    pub(super) fn whole(name: &'static str, text: &str) -> String {
        let mut writer = Self::new(name, "");
        writer.out.push_str(&escape(text));
        writer.finish()
    }

    /// Closes the element that was opened last.
    pub(super) fn close(&mut self) {
        let name = self.open.pop().expect("an element is open");
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// An element with a text.
    pub(super) fn text(&mut self, name: &'static str, text: &str) {
        self.open(name);
        self.out.push_str(&escape(text));
        self.close();
    }

    /// The same, if there is a text.
    pub(super) fn optional(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Closes everything.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}
