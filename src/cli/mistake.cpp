#include "cli/mistake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/field_words.h"
#include "base/nearest_name.h"
#include "base/number/bytes.h"
#include "data/dataset.h"
#include "model/model.h"

namespace thimble {
namespace {

// Commands by the words of other programs.
constexpr std::pair<std::string_view, std::string_view> kCommandWords[] = {
    {"version", "--version"},    {"models", "list models"},
    {"model", "list models"},    {"datasets", "list data"},
    {"dataset", "list data"},    {"flags", "list flags"},
    {"options", "list flags"},   {"config", "list flags"},
    {"download", "data get"},    {"get", "data get"},
    {"fetch", "data get"},       {"tokenize", "data tokens"},
    {"tokenise", "data tokens"}, {"bpe", "data bpe"},
    {"bleu", "data bleu"},       {"resume", "train MODEL --resume --out RUN"},
};

// Flags by their letters in other programs.
constexpr std::pair<char, std::string_view> kLetters[] = {
    {'b', "batch"},  {'d', "data"}, {'e', "epochs"}, {'j', "threads"}, {'l', "lr"},
    {'m', "memory"}, {'o', "out"},  {'q', "quiet"},  {'s', "seed"},    {'w', "weights"}};

template <class Pairs, class Word>
std::string_view ours(const Pairs& pairs, const Word& typed) {
  for (const auto& [theirs, word] : pairs) {
    if (theirs == typed) return word;
  }
  return "";
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

bool takes(const CLI::App& command, std::string_view argument) {
  return std::ranges::any_of(command.get_options(), [&](const CLI::Option* option) {
    return option->get_positional() && option->get_name(true) == argument;
  });
}

bool is_model(std::string_view name) {
  try {
    return name.ends_with(".toml") ||
           std::ranges::any_of(all_model_families(),
                               [&](const ModelFamily* family) { return family->matches(name); });
  } catch (const UserError&) {
    return true;  // with other numbers than it may have
  }
}

// "100MiB" and "8G", not a number alone.
bool is_size(const std::string& word) {
  try {
    return !word.empty() && std::isalpha(static_cast<unsigned char>(word.back())) != 0 &&
           parse_bytes(word).count > 0;
  } catch (const UserError&) {
    return false;
  }
}

bool is_number(const std::string& word) {
  return !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isdigit(c) != 0 || c == '.';
  });
}

// Dashes that a page or a word processor makes of "--", in UTF-8; the word behind them, or nothing.
std::optional<std::string> behind_long_dash(const std::string& word) {
  for (const std::string_view dash : {"\u2013", "\u2014", "\u2212"}) {
    if (!word.starts_with(dash)) continue;
    const std::string rest = word.substr(dash.size());
    return rest.substr(std::min(rest.find_first_not_of('-'), rest.size()));
  }
  return std::nullopt;
}

}  // namespace

Typed::Typed(const std::vector<Command>& commands, const std::vector<std::string>& words)
    : commands_(commands), words_(words) {
  const auto found = std::ranges::find(
      commands, words[0], [](const Command& command) { return command.app->get_name(); });
  if (found == commands.end()) return;
  command_ = found->app;
  name_ = words[0];
  for (first_ = 1; first_ < words.size(); ++first_) {
    const auto below = command_->get_subcommands(
        [&](const CLI::App* one) { return one->get_name() == words[first_]; });
    if (below.empty()) break;
    command_ = below[0];
    name_ += " " + words[first_];
  }
}

std::vector<std::string> Typed::names() const {
  std::vector<std::string> names;
  for (const Command& command : commands_) names.push_back(command.app->get_name());
  return names;
}

void Typed::check_command() const {
  const std::string& first = words_[0];
  if (command_ != nullptr || first.starts_with("-")) return;
  const std::string_view meant = ours(kCommandWords, first);
  user_check(meant.empty(), "there is no command '{}'; write `thimble {}`", first, meant);
  const std::vector<std::string> known = names();
  user_check(!is_model(first),
             "'{0}' is a model or a recipe, and a command stands in front of it: `thimble train "
             "{0}`, or `thimble plan {0}`",
             first);
  user_error("there is no command '{}'; known: {}{}", first, fmt::join(known, ", "),
             nearest_clause(first, known));
}

std::string Typed::mistake() const {
  for (const std::string& fault : {early_flag(), missing_command(), unknown_flag(), stray_word()}) {
    if (!fault.empty()) return fault;
  }
  return "";
}

std::string Typed::help() const {
  return command_ == nullptr ? "thimble --help" : "thimble " + name_ + " --help";
}

std::string Typed::early_flag() const {
  if (command_ != nullptr) return "";
  const std::string& first = words_[0];
  if (first == "-v" || first == "-V" || first == "-version") {
    return fmt::format("there is no {}; write `thimble --version`", first);
  }
  const std::vector<std::string> known = names();
  const auto command = std::ranges::find_first_of(words_, known);
  if (command == words_.end()) {
    const size_t dashes = std::min(first.find_first_not_of('-'), first.size());  // "--": all of it
    const std::string_view name = std::string_view(first).substr(dashes);
    const std::string likely = likely_name(name.substr(0, name.find('=')), known);
    return likely.empty() ? fmt::format(
                                "there is no {}; a command comes first, as in `thimble "
                                "train recipes/digits.toml`",
                                first)
                          : fmt::format("there is no {}; write `thimble {}`", first, likely);
  }
  return fmt::format("{} stands in front of its command; write `thimble {} ... {}`", first,
                     *command, first);
}

std::string Typed::missing_command() const {
  if (command_ == nullptr) return "";
  std::vector<std::string> names;
  for (const CLI::App* below : command_->get_subcommands({})) names.push_back(below->get_name());
  if (names.empty()) return "";
  const bool other = first_ < words_.size() && !words_[first_].starts_with("-");
  if (!other) return fmt::format("say which `{}`: {}", name_, fmt::join(names, ", "));
  const std::string& word = words_[first_];
  const std::string_view meant = ours(kCommandWords, word);
  if (meant.starts_with(name_)) {
    return fmt::format("there is no command '{} {}'; write `thimble {}`", name_, word, meant);
  }
  return fmt::format("there is no command '{} {}'; known: {}{}", name_, word,
                     fmt::join(names, ", "), nearest_clause(word, names));
}

std::string Typed::unknown_flag() const {
  if (command_ == nullptr) return "";
  const std::vector<std::string> known = flags_of(*command_);
  for (size_t i = first_; i < words_.size(); ++i) {
    if (const auto name = behind_long_dash(words_[i])) {
      return fmt::format("'{}' begins with a long dash; write --{} with two hyphens", words_[i],
                         *name);
    }
    const std::string flag = words_[i].substr(0, words_[i].find('='));
    const size_t dashes = flag.find_first_not_of('-');
    if (dashes == 0 || dashes == std::string::npos ||
        std::isalpha(static_cast<unsigned char>(flag[dashes])) == 0)
      continue;
    std::string name = flag.substr(dashes);
    if (dashes == 2 && has(known, name)) continue;
    if (dashes == 1 && name.size() == 1) {
      const CLI::Option* const one = command_->get_option_no_throw(flag);
      if (one != nullptr) continue;  // -h
      const std::string_view meant = ours(kLetters, name[0]);
      if (!meant.empty()) return fmt::format("there is no {}; write --{}", flag, meant);
      return fmt::format("there is no {}; flags are whole words behind two hyphens", flag);
    }
    if ((name == "model" || name == "recipe" || name == "config") && takes(*command_, "model")) {
      return fmt::format("there is no {0}; the model or the recipe has no flag: `thimble {1} {2}`",
                         flag, name_, i + 1 < words_.size() ? words_[i + 1] : "recipe.toml");
    }
    std::ranges::replace(name, '_', '-');
    if (has(known, name)) return fmt::format("there is no {}; write --{}", flag, name);
    for (const Command& other : commands_) {
      if (!has(flags_of(*other.app), name)) continue;
      return fmt::format("`thimble {}` has no --{}; `thimble {}` has it", name_, name,
                         other.app->get_name());
    }
    if (!in_our_words(name, known)) {
      for (const Command& other : commands_) {
        const auto words = in_our_words(name, flags_of(*other.app));
        if (words) {
          return fmt::format("there is no {}; {}, of `thimble {}`", flag, *words,
                             other.app->get_name());
        }
      }
    }
    return no_such_setting(flag, known);
  }
  return "";
}

std::string Typed::stray_word() const {
  if (command_ == nullptr) return "";
  const std::vector<std::string> strays = command_->remaining();
  if (strays.empty()) return "";
  const std::vector<std::string> known = flags_of(*command_);
  const std::string& word = strays.front();
  const auto at = std::ranges::find(words_, word);
  const std::string before = at == words_.begin() || at == words_.end() ? "" : *(at - 1);
  if (is_number(before) && is_size("1" + word)) {
    return fmt::format("a size is one word; write {}{}", before, word);
  }
  const size_t equals = word.find('=');
  if (equals != std::string::npos && has(known, word.substr(0, equals))) {
    return fmt::format("'{}' is a flag without its hyphens; write --{}", word, word);
  }
  if (has(known, word)) {
    return fmt::format("'{0}' is a flag without its hyphens; write --{0}", word);
  }
  const auto meant = [&](std::string_view what, std::string_view flag) {
    return fmt::format("'{0}' is {1}; write --{2} {0}", word, what, flag);
  };
  if (has(known, "memory") && is_size(word)) return meant("a size", "memory");
  if (has(known, "data") && find_dataset(word, "") != nullptr) return meant("a data set", "data");
  if (takes(*command_, "model") && is_model(word)) {
    return fmt::format("'{}' is one model too many: `thimble {}` takes one", word, name_);
  }
  return fmt::format("'{}' is a word too many for `thimble {}`", word, name_);
}

}  // namespace thimble
