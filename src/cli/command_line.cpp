#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/failure.h"
#include "base/host/process.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/mistake.h"
#include "cli/options.h"
#include "cli/version.h"

namespace thimble {
namespace {

constexpr const char* kWhat =
    "Thimble trains neural networks inside a memory budget that you choose: every\n"
    "byte of a training step is planned, checked and known before the first one runs.";
constexpr const char* kExamples =
    "Examples:\n"
    "  thimble train recipes/digits.toml        a small net on built-in digits\n"
    "  thimble plan wrn-28-2 --batch 100        what a step needs, byte for byte\n"
    "  thimble plan wrn-28-2 --memory 100MiB    the same step in less\n"
    "  thimble calibrate wrn-28-2 --batch 100   measures kernels, for better plans\n"
    "  thimble profile wrn-16-2 --data digits   predicted against measured\n\n"
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
      add_train(app),    add_plan(app),    add_profile(app),    add_calibrate(app),
      add_verify(app),   add_list(app),    add_data(app),       add_average(app),
      add_evaluate(app), add_predict(app), add_sample(app),     add_translate(app),
      add_export(app),   add_report(app),  add_compare(app),    add_finetune(app),
      add_chat(app),     add_help(app),    add_completion(app), add_man(app)};
  app.footer(kExamples);  // of this page only: subcommands copy what is there when they are added
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    say(std::string_view(app.help()));
    return kCallersMistake;
  }
  const std::vector<std::string> typed = arguments;
  const Typed words(commands, typed);
  words.check_command();
  try {
    split_empty_values(arguments);
    join_resume_value(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(arguments);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::string wrong = words.mistake();
    say("thimble: {}; see `{}`\n", wrong.empty() ? error.what() : wrong, words.help());
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
