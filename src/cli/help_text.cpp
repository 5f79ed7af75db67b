#include "cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace thimble {
namespace {

struct Listed {
  std::string path;  // "data get"; empty: the program itself
  const CLI::App* command = nullptr;
};

void list_below(const CLI::App& command, const std::string& path, std::vector<Listed>& all) {
  all.push_back({path, &command});
  for (const CLI::App* below : command.get_subcommands({})) {
    list_below(*below, path.empty() ? below->get_name() : path + " " + below->get_name(), all);
  }
}

std::vector<Listed> commands_of(const CLI::App& root) {
  std::vector<Listed> all;
  list_below(root, "", all);
  return all;
}

std::vector<std::string> words_behind(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* below : command.get_subcommands({})) words.push_back(below->get_name());
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

std::string bash_script(const CLI::App& root) {
  std::string paths, cases;
  for (const auto& [path, command] : commands_of(root)) {
    if (!path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", path);
    cases += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(words_behind(*command), " "));
  }
  return fmt::format(
      "_thimble() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} path='' words='' word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"${{path:+$path }}$word\" in\n"
      "      {}) path=\"${{path:+$path }}$word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case $path in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _thimble thimble\n",
      paths, cases);
}

std::string quoted_for_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_script(const CLI::App& root) {
  std::string script = "complete -c thimble -n __fish_use_subcommand -f\n";
  for (const auto& [path, command] : commands_of(root)) {
    std::string at = "__fish_use_subcommand";
    if (!path.empty()) {
      std::vector<std::string> seen;
      std::istringstream parts(path);
      for (std::string part; parts >> part;) seen.push_back("__fish_seen_subcommand_from " + part);
      at = fmt::format("\"{}\"", fmt::join(seen, "; and "));
    }
    for (const CLI::App* below : command->get_subcommands({})) {
      script += fmt::format("complete -c thimble -n {} -f -a {} -d {}\n", at, below->get_name(),
                            quoted_for_fish(below->get_description()));
    }
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        script += fmt::format("complete -c thimble -n {} -l {}{} -d {}\n", at, name,
                              option->get_items_expected_max() > 0 ? " -r" : "",
                              quoted_for_fish(option->get_description()));
      }
    }
  }
  return script;
}

// Text as roff has it: no line of it is a request, and a hyphen is one that can be copied.
std::string roff(const std::string& text) {
  std::string safe;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
    begins = c == '\n';
  }
  return safe;
}

}  // namespace

size_t help_width() {
  if (const char* columns = std::getenv("COLUMNS")) {
    const long width = std::strtol(columns, nullptr, 10);
    if (width > 0) return static_cast<size_t>(width);
  }
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string wrapped(const std::string& text, size_t column, size_t width) {
  constexpr size_t kNarrowest = 20;
  if (width < column + kNarrowest) return text;
  const size_t room = width - column;
  std::string lines;
  size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (used > 0 && used + 1 + word.size() > room) {
      lines += '\n';
      used = 0;
    } else if (used > 0) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += word.size();
  }
  return lines;
}

std::vector<const CLI::App*> all_commands(const CLI::App& root) {
  std::vector<const CLI::App*> all;
  for (const Listed& listed : commands_of(root)) all.push_back(listed.command);
  return all;
}

std::string page_name(const CLI::App& root, const CLI::App& command) {
  const std::string path = path_of(root, command);
  std::string name = "thimble";
  for (const char c : path.empty() ? path : "-" + path) name += c == ' ' ? '-' : c;
  return name;
}

std::string path_of(const CLI::App& root, const CLI::App& command) {
  for (const auto& [path, listed] : commands_of(root)) {
    if (listed == &command) return path;
  }
  return "";
}

std::string completion_script(const CLI::App& root, const std::string& shell) {
  if (shell == "fish") return fish_script(root);
  if (shell == "bash") return bash_script(root);
  return "#compdef thimble\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(root);
}

std::string man_page(const CLI::App& root, const CLI::App& command, const std::string& version) {
  const std::string path = path_of(root, command);
  const std::string name = page_name(root, command);
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string summary = command.get_description();
  for (char& c : summary) c = c == '\n' ? ' ' : c;
  std::string page = fmt::format(".TH {} 1 \"\" \"thimble {}\"\n.SH NAME\n{} \\- {}\n", roff(title),
                                 version, roff(name), roff(summary));
  const bool choices = !command.get_subcommands({}).empty();
  page += fmt::format(".SH SYNOPSIS\n.B thimble{}\n{}[OPTIONS]", path.empty() ? "" : " " + path,
                      choices ? "COMMAND " : "");
  std::string arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || !option->get_lnames().empty()) continue;
    const std::string argument = roff(option->get_name(true));
    page += " " + argument;
    arguments += fmt::format(".TP\n.I {}\n{}\n", argument, roff(option->get_description()));
  }
  page += "\n";
  if (!arguments.empty()) page += ".SH ARGUMENTS\n" + arguments;
  if (choices) {
    page += ".SH COMMANDS\n";
    for (const CLI::App* below : command.get_subcommands({})) {
      page +=
          fmt::format(".TP\n.B {}\n{}\n", roff(below->get_name()), roff(below->get_description()));
    }
  }
  page += ".SH OPTIONS\n";
  for (const std::string& group : command.get_groups()) {
    if (!group.empty() && group != "Options") page += fmt::format(".SS {}\n", roff(group));
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group() != group || option->get_lnames().empty()) continue;
      const std::string type = option->get_type_size() == 0 ? "" : option->get_type_name();
      page += fmt::format(
          ".TP\n.B {}{}\n{}\n", roff("--" + option->get_lnames()[0]),
          type.empty() ? "" : "\\fR \\fI" + roff(type.substr(0, type.find(':'))) + "\\fR",
          roff(option->get_description()));
    }
  }
  if (!command.get_footer().empty()) {
    page += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", roff(command.get_footer()));
  }
  return page + ".SH SEE ALSO\n" + (path.empty() ? "thimble help COMMAND\n" : ".BR thimble (1)\n");
}

}  // namespace thimble
