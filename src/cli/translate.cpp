// thimble translate: text through a trained model, and how good it is.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "data/pair_set.h"
#include "generate/translator.h"
#include "text/utf8.h"
#include "weights/average.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

struct TranslateFlags : TrainedFlags {
  std::string input, output;
  std::vector<std::string> references;
  int64_t beam = 4;
  double length_penalty = 1;
  int64_t average = 1;
  bool lower = false;
  bool cut = false;
};

PairSet pairs_of(const Recipe& recipe, const std::string& folder) {
  user_check(recipe.data.name == "pairs",
             "the run was trained on --data {}, and what translates is trained on pairs",
             recipe.data.name);
  PairSet pairs = read_pair_set(recipe.data.folder);
  check_vocabulary(folder, pairs.digest, recipe.data.folder);
  return pairs;
}

// The sentences of the input as tokens with an end; of empty lines, nothing. A sentence too long for
// the run is refused, or (--cut) loses its end.
std::vector<std::vector<int32_t>> encode(const TranslateFlags& flags, const PairSet& pairs,
                                         int64_t longest) {
  std::vector<std::vector<int32_t>> sentences;
  int64_t cut = 0, first_cut = 0;
  for_each_line(flags.input, [&](int64_t number, std::string_view line) {
    std::vector<int32_t> tokens =
        pairs.source_pieces.encode(pairs.source.pieces(pairs.source.words(line)));
    if (!tokens.empty()) tokens.push_back(kEndToken);
    if (std::ssize(tokens) > longest) {
      user_check(flags.cut,
                 "'{}', line {}: a sentence of {} tokens is longer than the {} that the run was "
                 "trained with; break it up, or translate the beginning of such sentences with "
                 "--cut",
                 flags.input, number, tokens.size(), longest);
      tokens.resize(static_cast<size_t>(longest - 1));
      tokens.push_back(kEndToken);
      if (cut++ == 0) first_cut = number;
    }
    sentences.push_back(std::move(tokens));
  });
  user_check(!sentences.empty(), "'{}' is empty: there is nothing to translate", flags.input);
  if (cut > 0)
    say("{} of {} sentences, line {} the first, were cut to {} tokens\n", cut, sentences.size(),
        first_cut, longest);
  return sentences;
}

// Faults that would otherwise come to light when all is translated.
void check_files(const TranslateFlags& flags, size_t sentences) {
  for (const std::string& path : flags.references) {
    const size_t lines = read_lines(path).size();
    user_check(lines == sentences,
               "'{}' has {} lines and '{}' has {}: a sentence and its reference stand in the same "
               "line of each",
               flags.input, sentences, path, lines);
  }
  if (flags.output.empty()) return;
  const AtomicFile can_be_written(flags.output);  // goes as it came
}

// Averaged where that was asked for, in a file that goes away.
void load(const TranslateFlags& flags, const std::string& folder, TrainedModel& trained) {
  if (!flags.weights.empty()) return load_checkpoint_weights(flags.weights, trained.program());
  if (flags.average == 1) {
    trained.load({.checkpoint = folder});
    return;
  }
  namespace fs = std::filesystem;
  const std::string mean = fmt::format("{}/.average-{}.partial", flags.run, getpid());
  average_weights(last_weights(flags.run, flags.average), mean);
  try {
    load_checkpoint_weights(mean, trained.program());
  } catch (...) {
    fs::remove(mean);
    throw;
  }
  fs::remove(mean);
}

std::string translated(const TranslateFlags& flags, const PairSet& pairs, Translator& translator,
                       const std::vector<std::vector<int32_t>>& sentences) {
  std::vector<std::vector<int32_t>> full;
  for (const auto& sentence : sentences) {
    if (!sentence.empty()) full.push_back(sentence);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  ProgressLine line;
  const auto results = translator.translate(full, [&](size_t done) {
    if (flags.json) return;
    const std::string text =
        fmt::format("{} of {} sentences, {:.0f} s", done, full.size(), seconds());
    if (done == full.size()) return line.print(text);
    line.show(static_cast<double>(done) / static_cast<double>(full.size()), text);
  });
  std::string text;
  size_t next = 0;
  for (const auto& sentence : sentences) {
    if (!sentence.empty()) {
      text += pairs.target.text(pairs.target_pieces.decode(results[next++]));
    }
    text += '\n';
  }
  return text;
}

int run(const TranslateFlags& flags) {
  const std::string folder = checkpoint_in(flags.run);
  Recipe recipe = flags.recipe_of(folder);
  if (!flags.data_dir.empty()) recipe.data.folder = flags.data_dir;
  const PairSet pairs = pairs_of(recipe, folder);
  auto planned = plan_or_explain(recipe, flags.json);
  if (!planned) return kInfeasible;
  const BeamOptions options = {.beam = flags.beam,
                               .length_penalty = flags.length_penalty,
                               .begin = kBeginToken,
                               .end = kEndToken,
                               .never = {kPadToken, kBeginToken}};
  TrainedModel trained(*planned);
  Translator translator(trained, options);
  const auto sentences = encode(flags, pairs, translator.longest());
  check_files(flags, sentences.size());
  load(flags, folder, trained);
  const std::string text = translated(flags, pairs, translator, sentences);
  if (!flags.output.empty()) write_file(flags.output, text);
  if (flags.output.empty() && !flags.json) fmt::print("{}", text);
  if (flags.references.empty()) {
    if (flags.json) {
      print_json({{"sentences", sentences.size()},
                  {"arena_bytes", planned->plan().arena.count},
                  {"text", text}});
    }
    return kOk;
  }
  const BleuOptions how = {.lower_case = flags.lower};
  print_bleu(bleu_of_files(flags.output, flags.references, how), how, flags.references.size(),
             flags.json);
  return kOk;
}

}  // namespace

Command add_translate(CLI::App& app) {
  auto flags = std::make_shared<TranslateFlags>();
  CLI::App* command = app.add_subcommand("translate", "Translate text with a trained model");
  add_argument(*command, "run", flags->run, "Folder of the run (--out of `thimble train`)");
  add_value(*command, "--input", flags->input, "FILE", "Raw text, a sentence a line")->required();
  add_value(*command, "--output", flags->output, "FILE", "File to write (standard output)");
  add_whole(*command, "--beam", flags->beam, 1, 1000, "Beginnings that are gone on with (4)");
  add_value(*command, "--length-penalty", flags->length_penalty, "X",
            "A translation of n tokens counts its score / n^X (1)")
      ->check(number_between(-100, 100));
  auto* average = add_whole(*command, "--average", flags->average, 1, 10'000,
                            "The mean of the last N checkpoints (1)");
  add_value(*command, "--weights", flags->weights, "FILE",
            "Or weights that `thimble average` wrote")
      ->excludes(average);
  add_value(*command, "--reference", flags->references, "FILE",
            "With --output: files to print the BLEU against");
  command->add_flag("--cut", flags->cut,
                    "Of sentences longer than the run's, translate the beginning");
  command->add_flag("--lower", flags->lower, "With --reference: both in lower case");
  flags->add_to(*command, "Folder of the vocabularies (the run's)");
  return {command, [flags] {
            user_check(flags->references.empty() || !flags->output.empty(),
                       "--reference judges a file of translations; say where it goes with "
                       "--output");
            return run(*flags);
          }};
}

}  // namespace thimble
