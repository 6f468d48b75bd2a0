use std::fmt::Write;

use super::Version;

/// The first module's argument.
pub(super) const BEGIN: u32 = 0x811c_9dc5;

pub(in crate::workloads) const PROGRAM: &str = "build/ferry";

pub(super) struct Part {
    pub path: String,
    pub entry: String,
}

pub(super) fn files(version: Version, parts: &[Part]) -> [(&'static str, String); 4] {
    let readme = format!(
        "ferry {}\n========\n\nA program without a purpose, of the size of one that has it: {} modules that pass a \
         number to each\nother. `make` builds it; it prints one number in hexadecimal, always the same.\n",
        version.tag(),
        parts.len()
    );
    [
        ("src/main.c", main(parts)),
        ("Makefile", MAKEFILE.to_owned()),
        ("README", readme),
        (".gitignore", "/build/\n/tags\n/cscope.out\n".to_owned()),
    ]
}

fn main(parts: &[Part]) -> String {
    let mut text =
        "/*\n * main.c - passes a number through all parts, and prints it.\n */\n#include <stdio.h>\n\n"
            .to_owned();
    // Writing to a string does not fail.
    for part in parts {
        let _ = writeln!(text, "#include \"{}.h\"", part.path);
    }
    let _ = write!(text, "\nint main(void)\n{{\n\tuint32_t sum = {BEGIN:#010x}u;\n\n");
    for part in parts {
        let _ = writeln!(text, "\tsum = {}(sum);", part.entry);
    }
    text.push_str("\tprintf(\"%08x\\n\", (unsigned)sum);\n\treturn 0;\n}\n");
    text
}

const MAKEFILE: &str = "\
# `make` builds the program, `make clean` takes away what was made.
CC = cc
CFLAGS = -O0 -Wall
CPPFLAGS = -Iinclude -MMD -MP

SOURCES := $(sort $(wildcard src/*.c src/*/*.c))
OBJECTS := $(SOURCES:src/%.c=build/%.o)
PLACES := $(sort $(dir $(OBJECTS)))

build/ferry: $(OBJECTS)
\t$(CC) $(LDFLAGS) -o $@ $(OBJECTS)

build/%.o: src/%.c | $(PLACES)
\t$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(PLACES):
\tmkdir -p $@

clean:
\trm -rf build

.PHONY: clean

-include $(OBJECTS:.o=.d)
";
