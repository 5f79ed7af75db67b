// thimble: trains neural networks inside a memory budget that you choose.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "base/error.h"
#include "cli/options.h"

namespace thimble {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Thimble trains neural networks inside a memory budget that you choose.");
  app.name("thimble");
  app.require_subcommand(1);
  app.set_version_flag("--version", "thimble 0.1.0");
  const std::vector<Command> commands = {add_train(app), add_plan(app), add_profile(app),
                                         add_verify(app), add_list(app)};
  try {
    std::vector<std::string> arguments = expand_recipe({argv + 1, argv + argc});
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "thimble: {}; see `thimble --help`\n", error.what());
    return kCallersMistake;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return kCallersMistake;
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  try {
    return thimble::run(argc, argv);
  } catch (const thimble::UserError& error) {
    fmt::print(stderr, "thimble: {}\n", error.what());
    return thimble::kCallersMistake;
  } catch (const std::exception& error) {
    fmt::print(stderr, "thimble: internal error: {}\n", error.what());
    return thimble::kOurBug;
  }
}
