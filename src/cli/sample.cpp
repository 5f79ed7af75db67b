// thimble sample: continues a text with a trained model.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "data/prepare/token_text.h"
#include "generate/sampler.h"

namespace thimble {
namespace {

struct SampleFlags : TrainedFlags {
  std::string prompt = "\n";
  int64_t length = 256;
  SampleOptions how;
  bool numbers = false;
};

std::vector<int32_t> read_numbers(const std::string& text) {
  std::vector<int32_t> tokens;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if (*at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    int32_t token = 0;
    const auto [next, error] = std::from_chars(at, end, token);
    user_check(error == std::errc(), "--prompt with --numbers is whole numbers, not '{}'", text);
    tokens.push_back(token);
    at = next;
  }
  return tokens;
}

std::string numbers_text(std::span<const int32_t> tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

// On a terminal, with how far it has come.
std::vector<int32_t> go_on(Sampler& sampler, const std::vector<int32_t>& prompt,
                           const SampleFlags& flags) {
  ProgressLine line;
  int64_t done = 0;
  return sampler.go_on(prompt, flags.length, flags.how, [&](int32_t) {
    ++done;
    if (!line.terminal() || flags.json || !line.due()) return;
    line.redraw(static_cast<double>(done) / static_cast<double>(flags.length),
                fmt::format("{} of {} tokens", done, flags.length));
  });
}

int run(const SampleFlags& flags) {
  const std::string checkpoint = checkpoint_in(flags.run);
  const Recipe recipe = flags.recipe_of(checkpoint);
  user_check(
      recipe.data.name != "pairs",
      "the run was trained on pairs, and translates: `thimble translate`; choose a run of gpt");
  const std::string folder = flags.data_dir.empty() ? recipe.data.folder : flags.data_dir;
  const std::unique_ptr<TokenText> text = flags.numbers ? nullptr : TokenText::read(folder);
  if (text != nullptr) check_vocabulary(checkpoint, vocabulary_digest(folder), folder);
  const std::vector<int32_t> prompt =
      text == nullptr ? read_numbers(flags.prompt) : text->encode(flags.prompt);
  auto planned = plan_or_explain(recipe, flags.json);
  if (!planned) return kInfeasible;
  TrainedModel trained(*planned);
  Sampler sampler(trained);
  if (flags.weights.empty()) {
    trained.load_checkpoint(checkpoint);
  } else {
    const std::string note = trained.load_file(flags.weights);
    if (!note.empty()) say("{}: {}\n", flags.weights, note);
  }
  const std::vector<int32_t> made = go_on(sampler, prompt, flags);
  const std::string said = text == nullptr ? numbers_text(made) : text->decode(made);
  if (flags.json) {
    print_json({{"prompt", flags.prompt},
                {"tokens", made},
                {"text", text == nullptr ? "" : said},
                {"arena_bytes", planned->plan().arena.count}});
    return kOk;
  }
  const bool apart =
      !flags.prompt.ends_with('\n') && !flags.prompt.ends_with(' ') && !said.starts_with('\n');
  const std::string_view gap = text == nullptr ? " " : apart ? text->gap() : "";
  fmt::print("{}{}{}\n", flags.prompt, gap, said);
  return kOk;
}

}  // namespace

Command add_sample(CLI::App& app) {
  auto flags = std::make_shared<SampleFlags>();
  CLI::App* command = app.add_subcommand("sample", "Continue a text with a trained model");
  add_argument(*command, "run", flags->run,
               "Folder of the run (--out of `thimble train`), or a checkpoint");
  const CLI::Option* prompt =
      add_value(*command, "--prompt", flags->prompt, "TEXT", "What to go on with (a line break)");
  add_whole(*command, "--length", flags->length, 0, 1'000'000, "Tokens to make (256)");
  add_value(*command, "--temperature", flags->how.temperature, "X",
            "What logits are divided by; 0: always the likeliest token (1)")
      ->check(number_between(0, 1000));
  add_whole(*command, "--top-k", flags->how.top_k, 0, INT64_C(1) << 31,
            "Only the likeliest N tokens; 0: all (0)");
  add_value(*command, "--seed", flags->how.seed, "N", "Seed of the choice (1)");
  command->add_flag("--numbers", flags->numbers,
                    "Tokens as numbers, in the prompt and what follows");
  add_value(*command, "--weights", flags->weights, "FILE",
            "Other weights than the checkpoint's (safetensors)");
  flags->add_to(*command, "Folder of the vocabulary (the run's)");
  return {command, [flags, prompt] {
            user_check(!flags->numbers || prompt->count() > 0,
                       "--numbers wants the tokens to go on with as numbers, too; give them with "
                       "--prompt '5 17'");
            return run(*flags);
          }};
}

}  // namespace thimble
