#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Image {
    pub path: Box<[u8]>,
    pub device: (u32, u32),
    pub inode: u64,
}

impl Image {
    pub fn name(&self) -> String {
        let name = self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        match name {
            b"" | b"anon" => "[anonymous]".to_owned(),
            name => String::from_utf8_lossy(name).into_owned(),
        }
    }
}
