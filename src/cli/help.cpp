// thimble help, completion, man: the command list, for people, shells and man.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/io/file.h"
#include "base/nearest_name.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/options.h"
#include "cli/version.h"

namespace thimble {
namespace {

// The command that words name, from `root` down. UserError where one is none.
const CLI::App& command_at(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* at = &root;
  for (const std::string& word : words) {
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* below : at->get_subcommands({})) {
      names.push_back(below->get_name());
      if (names.back() == word) found = below;
    }
    user_check(!names.empty(), "`thimble {}` has no commands below it", path_of(root, *at));
    user_check(found != nullptr, "there is no command '{}'; known: {}{}", word,
               fmt::join(names, ", "), nearest_clause(word, names));
    at = found;
  }
  return *at;
}

// By the layout itself: App::help() shows the help of the command that was parsed, which is `help`.
int show_help(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App& command = command_at(root, words);
  std::string above = words.empty() ? "" : "thimble";
  for (size_t i = 0; i + 1 < words.size(); ++i) above += " " + words[i];
  const auto layout = root.get_formatter();
  const std::string name =
      words.empty() ? "thimble" : fmt::format("{} {}", above, command.get_name());
  print("{}", layout->make_help(&command, name, CLI::AppFormatMode::Normal));
  return kOk;
}

}  // namespace

Command add_help(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "Help on a command: `thimble help plan`");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *words, "Its name; of `data` also the one below it")
      ->type_name("");
  return {command, [&app, words] { return show_help(app, *words); }};
}

Command add_completion(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "A script that completes commands and flags in a shell");
  auto shell = std::make_shared<std::string>();
  add_argument(*command, "shell", *shell, "bash, zsh or fish");
  command->footer(
      "bash: source <(thimble completion bash)\n"
      "zsh:  thimble completion zsh >~/.zfunc/_thimble\n"
      "fish: thimble completion fish >~/.config/fish/completions/thimble.fish");
  return {command, [&app, shell] {
            const std::vector<std::string> shells = {"bash", "zsh", "fish"};
            user_check(std::ranges::find(shells, *shell) != shells.end(),
                       "there is no completion for '{}'; known: {}{}", *shell,
                       fmt::join(shells, ", "), nearest_clause(*shell, shells));
            print("{}", completion_script(app, *shell));
            return kOk;
          }};
}

Command add_man(CLI::App& app) {
  CLI::App* command = app.add_subcommand("man", "A page of man: `thimble man plan | man -l -`");
  struct Flags {
    std::vector<std::string> words;
    std::string folder;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("command", flags->words, "Its name; none: the page of thimble")
      ->type_name("");
  command->add_option("--all", flags->folder, "Write the pages of all commands there")
      ->type_name("FOLDER");
  return {command, [&app, flags] {
            if (flags->folder.empty()) {
              print("{}", man_page(app, command_at(app, flags->words), version_number()));
              return kOk;
            }
            ensure_directory(flags->folder);
            for (const CLI::App* one : all_commands(app)) {
              write_file(fmt::format("{}/{}.1", flags->folder, page_name(app, *one)),
                         man_page(app, *one, version_number()));
            }
            return kOk;
          }};
}

}  // namespace thimble
