#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/failure.h"
#include "base/field_words.h"
#include "base/host/process.h"
#include "base/nearest_name.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/options.h"
#include "cli/version.h"

namespace thimble {
namespace {

constexpr const char* kWhat =
    "Thimble trains neural networks inside a memory budget that you choose: every\n"
    "byte of a training step is planned, checked and known before the first one runs.";
constexpr const char* kExamples =
    "Examples:\n"
    "  thimble train recipes/digits.toml                         a small net on built-in digits\n"
    "  thimble plan wrn-28-2 --batch 100                         what a step needs, byte for byte\n"
    "  thimble plan wrn-28-2 --memory 100MiB --planner optimal   the same step in less\n"
    "  thimble calibrate wrn-28-2 --batch 100                    measures kernels, for better "
    "plans\n"
    "  thimble profile wrn-16-2 --data digits                    predicted against measured\n\n"
    "Exit codes: 0 done, 1 a bug of ours, 2 a mistake in the call or a machine that\n"
    "cannot go on, 3 no plan fits the budget, 130 and 143 stopped by SIGINT or\n"
    "SIGTERM.";

// Help as CLI11 lays it out, without its notes on ranges and counts, and with single blank lines.
// Descriptions are wrapped to the terminal; what goes to a file or a pipe is not.
class PlainHelp final : public CLI::Formatter {
 public:
  PlainHelp() { column_width(kColumn); }

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), kColumn, help_width());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream line;
    CLI::detail::format_help(line, command->get_display_name(),
                             wrapped(command->get_description(), kColumn, help_width()), kColumn);
    return line.str();
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    return " " + type.substr(0, type.find(':'));
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    for (size_t at; (at = help.find("\n\n\n")) != std::string::npos;) help.erase(at, 1);
    return help;
  }

 private:
  static constexpr size_t kColumn = 28;  // of descriptions
};

// The command that the first words name, with those below it: `data`, `data bpe learn`.
struct Named {
  const CLI::App* app = nullptr;  // null: none
  std::string name;
  size_t words = 0;
};

Named named_command(const std::vector<Command>& commands, const std::vector<std::string>& words) {
  const auto first = std::ranges::find(
      commands, words[0], [](const Command& command) { return command.app->get_name(); });
  if (first == commands.end()) return {};
  Named named = {first->app, words[0], 1};
  while (named.words < words.size()) {
    const auto below = named.app->get_subcommands(
        [&](const CLI::App* one) { return one->get_name() == words[named.words]; });
    if (below.empty()) break;
    named = {below[0], named.name + " " + words[named.words], named.words + 1};
  }
  return named;
}

// The fault of a command that needs one below it. Empty: it needs none.
std::string missing_command(const Named& named, const std::vector<std::string>& words) {
  if (named.app == nullptr) return "";
  std::vector<std::string> names;
  for (const CLI::App* below : named.app->get_subcommands({})) names.push_back(below->get_name());
  if (names.empty()) return "";
  const bool other = named.words < words.size() && !words[named.words].starts_with("-");
  if (!other) return fmt::format("say which `{}`: {}", named.name, fmt::join(names, ", "));
  return fmt::format("there is no command '{} {}'; known: {}", named.name, words[named.words],
                     fmt::join(names, ", "));
}

// Where help on a mistake is, one paste away.
std::string help_on(const std::vector<Command>& commands, const Named& named,
                    const std::string& first) {
  if (named.app != nullptr) return "thimble " + named.name + " --help";
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.app->get_name());
  const std::string likely = likely_name(first, names);
  user_check(first.starts_with("-"), "there is no command '{}'; known: {}{}", first,
             fmt::join(names, ", "),
             likely.empty() ? "" : fmt::format("; the nearest is '{}'", likely));
  return "thimble --help";
}

// The fault of the first word that looks like a flag and is none of the command's. Empty: there
// is no such word.
std::string unknown_flag(const std::vector<Command>& commands, const Named& named,
                         const std::vector<std::string>& words) {
  const auto flags_of = [](const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
    return names;
  };
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (named.app == nullptr) return "";
  const std::vector<std::string> known = flags_of(*named.app);
  for (size_t i = named.words; i < words.size(); ++i) {
    const std::string flag = words[i].substr(0, words[i].find('='));
    const size_t dashes = flag.find_first_not_of('-');
    if (dashes == 0 || dashes == std::string::npos ||
        std::isalpha(static_cast<unsigned char>(flag[dashes])) == 0)
      continue;
    const std::string name = flag.substr(dashes);
    if (dashes == 2 && has(known, name)) continue;
    if (dashes == 1 && name.size() == 1) continue;  // -h
    for (const Command& other : commands) {
      if (has(known, name) || !has(flags_of(*other.app), name)) continue;
      return fmt::format("`thimble {}` has no --{}; `thimble {}` has it", named.name, name,
                         other.app->get_name());
    }
    if (!in_our_words(name, known)) {
      for (const Command& other : commands) {
        const auto ours = in_our_words(name, flags_of(*other.app));
        if (ours)
          return fmt::format("there is no {}; {}, of `thimble {}`", flag, *ours,
                             other.app->get_name());
      }
    }
    return no_such_setting(flag, known);
  }
  return "";
}

// `--resume auto` in two words, as recipes and people write it: a flag takes its value behind "=".
void join_resume_value(std::vector<std::string>& arguments) {
  for (size_t at = 0; at + 1 < arguments.size(); ++at) {
    if (arguments[at] != "--resume" || arguments[at + 1] != "auto") continue;
    arguments[at] += "=auto";
    arguments.erase(arguments.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

// `--data-dir=` says the empty text, and does not take the word behind it.
void split_empty_values(std::vector<std::string>& arguments) {
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    arguments[at].pop_back();
    arguments.emplace(arguments.begin() + static_cast<ptrdiff_t>(++at));
  }
}

int run(int argc, char** argv) {
  CLI::App app(kWhat);
  app.name("thimble");
  app.formatter(std::make_shared<PlainHelp>());
  app.require_subcommand(1);
  app.set_version_flag(
      "--version", [] { return version_text(build_commit()); },
      "Version, commit, compiler and backends");
  const std::vector<Command> commands = {
      add_train(app),     add_plan(app),   add_profile(app),    add_calibrate(app),
      add_verify(app),    add_list(app),   add_data(app),       add_average(app),
      add_translate(app), add_sample(app), add_export(app),     add_report(app),
      add_compare(app),   add_help(app),   add_completion(app), add_man(app)};
  app.footer(kExamples);  // of this page only: subcommands copy what is there when they are added
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    say(std::string_view(app.help()));
    return kCallersMistake;
  }
  const std::vector<std::string> typed = arguments;
  const Named named = named_command(commands, typed);
  const std::string help = help_on(commands, named, typed[0]);
  try {
    split_empty_values(arguments);
    join_resume_value(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(arguments);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::string wrong = missing_command(named, typed);
    if (wrong.empty()) wrong = unknown_flag(commands, named, typed);
    say("thimble: {}; see `{}`\n", wrong.empty() ? error.what() : wrong, help);
    return kCallersMistake;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return kCallersMistake;
}

// Runs the command; whatever goes wrong is said and becomes an exit code.
int run_and_explain(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const SaidElsewhere&) {
    return kCallersMistake;
  } catch (...) {
    bool said = true;
    const FailureKind kind = explain_failure([&](std::string_view sentence) {
      // A bug's, while printing: said when all is over.
      said = std::ferror(stdout) == 0 || !sentence.starts_with("internal error");
      if (!said) return;
      say("thimble: ");
      say(sentence);
      say("\n");
    });
    return kind == FailureKind::bug && said ? kOurBug : kCallersMistake;
  }
}

}  // namespace

int run_command_line(int argc, char** argv) {
  prepare_process();
  const int code = run_and_explain(argc, argv);
  const std::string fault = undelivered_output();
  if (fault.empty()) return code;
  say("thimble: cannot write to standard output: {}\n", fault);
  return code == kOk ? kCallersMistake : code;
}

}  // namespace thimble
