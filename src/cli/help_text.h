// Help as text: for a terminal, for shells that complete words, and for man. All of it comes from the command list.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace thimble {

// Columns that help may take: those of the terminal or of COLUMNS; 0, as many as it likes, elsewhere.
size_t help_width();

// Lines broken at spaces so that they fit behind `column` columns; as it is where there is no room or no limit.
std::string wrapped(const std::string& text, size_t column, size_t width);

// The program, and every command below it.
std::vector<const CLI::App*> all_commands(const CLI::App& root);

// "thimble-data-get": the name of its page of man.
std::string page_name(const CLI::App& root, const CLI::App& command);

// The path of a command below `root`: "data bpe learn"; of `root` itself "".
std::string path_of(const CLI::App& root, const CLI::App& command);

// A script for bash, zsh or fish. REQUIRES: `shell` is one of them.
std::string completion_script(const CLI::App& root, const std::string& shell);

// A page of man, in roff.
std::string man_page(const CLI::App& root, const CLI::App& command, const std::string& version);

}  // namespace thimble
