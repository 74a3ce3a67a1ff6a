use windlass_tools::ToolType;

#[derive(ToolType)]
struct Pair(u8, u8);

#[derive(ToolType)]
enum Shape {
    Point,
    Circle { radius: f64 },
}

#[derive(ToolType)]
struct Wrapper<T> {
    value: T,
}

#[derive(ToolType)]
struct Flat {
    #[serde(flatten)]
    inner: Inner,
}

#[derive(ToolType)]
#[serde(rename_all = "camelcase")]
struct Inner {
    value: u8,
}

#[derive(ToolType)]
struct Reply {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<u8>,
}

fn main() {}
