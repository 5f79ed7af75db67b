// thimble sample: continues a text with a trained model.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/trained.h"
#include "data/prepare/token_text.h"
#include "generate/sampler.h"

namespace thimble {
namespace {

struct SampleFlags : TrainedFlags {
  std::string prompt = "\n";
  int64_t length = 256;
  SampleOptions how;
  TextGeneration asked;
  std::vector<std::string> stops;
  std::string memory;
  bool numbers = false, no_cache = false;
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

struct Continued {
  std::vector<int32_t> tokens;
  std::string text;      // without what ended it
  bool stopped = false;  // by --stop
  double seconds = 0;
};

std::string text_of(const TokenText* text, std::span<const int32_t> tokens) {
  return text == nullptr ? numbers_text(tokens) : text->decode(tokens);
}

// On a terminal, with how far it has come.
Continued go_on(Sampler& sampler, std::vector<int32_t> prompt, const TokenText* text,
                const SampleFlags& flags) {
  ProgressLine line;
  Continued made;
  const auto start = std::chrono::steady_clock::now();
  sampler.begin(std::move(prompt), flags.how);
  while (!made.stopped && std::ssize(made.tokens) < flags.length) {
    const std::optional<int32_t> token = sampler.make_token();
    made.stopped = !token;
    if (!token) break;
    made.tokens.push_back(*token);
    if (text != nullptr && !flags.stops.empty()) {
      made.text = text->decode(made.tokens);
      size_t end = made.text.size();
      for (const std::string& stop : flags.stops) end = std::min(end, made.text.find(stop));
      made.stopped = end < made.text.size();
      made.text.resize(end);
    }
    if (!line.terminal() || flags.json || !line.due()) continue;
    line.redraw(static_cast<double>(made.tokens.size()) / static_cast<double>(flags.length),
                fmt::format("{} of {} tokens", made.tokens.size(), flags.length));
  }
  made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (text == nullptr || flags.stops.empty()) made.text = text_of(text, made.tokens);
  return made;
}

// Tokens of a net from outside are numbers, unless a folder says what they are.
std::unique_ptr<TokenText> text_for(const SampleFlags& flags, const TextModel& model) {
  if (flags.numbers) return nullptr;
  const std::string folder = flags.data_dir.empty() ? model.recipe.data.folder : flags.data_dir;
  user_check(!model.checkpoint.empty() || !folder.empty(),
             "the tokens of '{}' are numbers here; give them with --numbers --prompt '5 17', or "
             "name a folder that says what they are with --data-dir",
             flags.run);
  auto text = TokenText::read(folder);
  if (!model.checkpoint.empty()) {
    check_vocabulary(model.checkpoint, vocabulary_digest(folder), folder);
  }
  return text;
}

int run(const SampleFlags& flags) {
  TextModel model = text_model_of(flags);
  if (!flags.memory.empty()) configure(model.recipe, {{"memory", flags.memory}});
  user_check(
      model.recipe.data.name != "pairs",
      "the run was trained on pairs, and translates: `thimble translate`; choose a run of gpt");
  const std::unique_ptr<TokenText> text = text_for(flags, model);
  std::vector<int32_t> prompt =
      text == nullptr ? read_numbers(flags.prompt) : text->encode(flags.prompt);
  auto planned = plan_text_or_explain(model.recipe, flags.asked, flags.json);
  if (!planned) return kInfeasible;
  Sampler sampler(*std::move(planned));
  say_note(flags.weights, sampler.load({model.checkpoint, flags.weights}));
  const Continued made = go_on(sampler, std::move(prompt), text.get(), flags);
  const std::string& said = made.text;
  if (flags.json) {
    print_json({{"prompt", flags.prompt},
                {"tokens", made.tokens},
                {"text", text == nullptr ? "" : said},
                {"stopped", made.stopped},
                {"seconds", made.seconds},
                {"arena_bytes", sampler.planned().plan().arena.count},
                {"cache_bytes", sampler.planned().cache.count}});
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
               "Folder of the run (--out of `thimble train`), a checkpoint, or hf:FOLDER");
  const CLI::Option* prompt =
      add_value(*command, "--prompt", flags->prompt, "TEXT", "What to go on with (a line break)");
  add_whole(*command, "--length", flags->length, 0, 1'000'000, "Tokens to make (256)");
  add_value(*command, "--temperature", flags->how.temperature, "X",
            "What logits are divided by; 0: always the likeliest token (1)")
      ->check(number_between(0, 1000));
  add_whole(*command, "--top-k", flags->how.top_k, 0, INT64_C(1) << 31,
            "Only the likeliest N tokens; 0: all (0)");
  add_value(*command, "--top-p", flags->how.top_p, "X",
            "Only the likeliest tokens whose probabilities add up to X (1)")
      ->check(number_between(0, 1));
  add_value(*command, "--stop", flags->stops, "TEXT",
            "Ends before this text; given several times, before the first of them")
      ->allow_extra_args(false);
  add_value(*command, "--stop-token", flags->how.stop, "N", "Ends before this token")
      ->allow_extra_args(false);
  add_whole(*command, "--context", flags->asked.context, 0, 1'000'000,
            "Tokens that the model sees at once (those of its records)");
  add_value(*command, "--memory", flags->memory, "SIZE", "Budget on the arena (the run's)");
  command->add_flag("--no-cache", flags->no_cache,
                    "Compute the whole text for each token, without a KV cache");
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
            user_check(!flags->numbers || flags->stops.empty(),
                       "--stop is text, and --numbers has none; give --stop-token");
            for (const std::string& stop : flags->stops) {
              user_check(!stop.empty(), "--stop '' would end before anything; leave it out");
            }
            if (flags->no_cache) flags->asked.cache = KvCache::off;
            return run(*flags);
          }};
}

}  // namespace thimble
