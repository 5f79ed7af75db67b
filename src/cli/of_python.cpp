// Commands of the Python package, which has tokenizers and chat templates: the program alone says where
// they are.
#include "base/error.h"
#include "cli/options.h"

namespace thimble {
namespace {

Command of_python(CLI::App& parent, const char* name, const char* help) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->allow_extras();
  const std::string words = parent.get_name() == "data" ? std::string("data ") + name : name;
  return {command, [command, words]() -> int {
            if (!command->parsed()) return -1;
            throw UserError("`thimble " + words +
                            "` is a command of the Python package; install it with `pip install "
                            "thimble[finetune]`, and repeat it there");
          }};
}

}  // namespace

Command add_finetune(CLI::App& app) {
  return of_python(app, "finetune", "Fine-tune a Hugging Face folder on a JSONL file");
}
Command add_chat(CLI::App& app) {
  return of_python(app, "chat", "Talk to a fine-tuned run, or to a Hugging Face folder");
}
Command add_data_show(CLI::App& data) {
  return of_python(data, "show",
                   "Print a record of a JSONL file as tokens, and which of them count");
}

}  // namespace thimble
