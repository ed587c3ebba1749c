// Path of the program in the package of this platform.
"use strict";

const name = `@memctl/${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "memctl.exe" : "memctl";

/** Returns the path, or throws an error that says what to do. */
exports.program = () => {
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    throw new Error(
      `memctl: the package \`${name}\` is not installed\n` +
        "hint: npm install -g memctl, without --omit=optional; where there is no such package: cargo install memctl",
    );
  }
};
