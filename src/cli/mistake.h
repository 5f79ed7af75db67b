// Mistakes of a command line, each with the words that were meant: one sentence with what to type.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/options.h"

namespace thimble {

// The words behind `thimble`, beside the commands that there are.
class Typed {
 public:
  // REQUIRES: there are words, and both outlive it.
  Typed(const std::vector<Command>& commands, const std::vector<std::string>& words);

  // UserError where the words begin with no command, though not with a flag.
  void check_command() const;
  // The fault of words that do not parse. Empty: the parser knows better.
  std::string mistake() const;
  // The call that shows help on the command: "thimble data get --help".
  std::string help() const;

 private:
  // The fault of a command that needs one below it.
  std::string missing_command() const;
  // The fault of flags in front of their command.
  std::string early_flag() const;
  // The fault of the first word that looks like a flag and is none of the command's.
  std::string unknown_flag() const;
  // The fault of the first word that has no place.
  std::string stray_word() const;
  std::vector<std::string> names() const;

  const std::vector<Command>& commands_;
  const std::vector<std::string>& words_;
  // The command that the first words name, with those below it: `data`, `data bpe learn`.
  const CLI::App* command_ = nullptr;  // null: none
  std::string name_;
  size_t first_ = 0;  // word behind its name
};

}  // namespace thimble
