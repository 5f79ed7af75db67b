// thimble data: from raw text and published files to what training reads.
#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "data/pair_set.h"
#include "data/prepare/get/get.h"
#include "data/token_set.h"
#include "text/bleu.h"
#include "text/utf8.h"

namespace thimble {
namespace {

// A subcommand of `data`: what to run when it was chosen.
using Action = std::function<int()>;

void tell(const std::string& sentence) { say("{}\n", sentence); }

void add_preparation(CLI::App& command, PreparationOptions& options) {
  command.add_flag("--tokenise,--tokenize", options.tokenise,
                   "Words and punctuation apart, by Moses' rules");
  command.add_flag("--lower", options.lower_case, "In lower case");
}

void note_language(const PreparationOptions& options, const char* flag) {
  if (!options.tokenise || !options.language.empty()) return;
  say("thimble: note: --tokenise puts apostrophes and abbreviations apart by the rules of a "
      "language; "
      "name it with {}\n",
      flag);
}

// Learns or applies: one file of codes, any number of texts.
Action add_bpe(CLI::App& data) {
  struct Flags {
    PreparationOptions preparation;
    std::vector<std::string> texts;
    std::string codes, out;
    int64_t merges = 10'000;
    int64_t least = 2;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* bpe = data.add_subcommand("bpe", "Cut words into pieces: learn how, or do it");
  bpe->require_subcommand(1);
  CLI::App* learn =
      bpe->add_subcommand("learn", "Learn merges from texts, jointly from all of them");
  CLI::App* apply = bpe->add_subcommand("apply", "Cut the words of a text into pieces");
  for (CLI::App* command : {learn, apply}) {
    add_argument(*command, "text", flags->texts, "Text files, a sentence a line");
    add_value(*command, "--out", flags->out, "FILE", "File to write")->required();
    add_value(*command, "--language", flags->preparation.language, "NAME",
              "For --tokenise: de, en, ...");
    add_preparation(*command, flags->preparation);
  }
  add_whole(*learn, "--merges", flags->merges, 1, 10'000'000, "How many merges (10000)");
  add_whole(*learn, "--least", flags->least, 1, 1'000'000'000,
            "Only pairs that are there so often (2)");
  add_value(*apply, "--codes", flags->codes, "FILE", "Merges that `learn` wrote")->required();
  return [flags, bpe, learn]() -> int {
    if (!bpe->parsed()) return -1;
    note_language(flags->preparation, "--language");
    if (learn->parsed()) {
      const Preparation plain(flags->preparation);
      WordCounts counts;
      for (const std::string& path : flags->texts) {
        for_each_line(
            path, [&](int64_t, std::string_view line) { count_words(plain.words(line), counts); });
      }
      user_check(!counts.empty(), "there are no words in '{}'", flags->texts.front());
      const std::vector<Merge> merges = learn_bpe(counts, flags->merges, flags->least);
      user_check(!merges.empty(),
                 "no two characters stand beside each other {} times in '{}': there is nothing to "
                 "merge; give more text, or a smaller --least",
                 flags->least, flags->texts.front());
      write_file(flags->out, to_text(merges));
      tell(fmt::format("{}: {} merges from {} words", flags->out, merges.size(), counts.size()));
      return kOk;
    }
    const Preparation cut(flags->preparation,
                          std::make_shared<const Bpe>(read_merges(flags->codes)));
    AtomicFile file(flags->out);
    for (const std::string& path : flags->texts) {
      for_each_line(path, [&](int64_t, std::string_view line) {
        file.write(cut.pieces(cut.words(line)) + "\n");
      });
    }
    file.commit();
    return kOk;
  };
}

ParallelFiles parallel(const std::vector<std::string>& paths, const std::vector<int>& columns) {
  ParallelFiles files;
  if (!paths.empty()) files.source = paths[0];
  if (paths.size() > 1) files.target = paths[1];
  files.source_column = columns[0];
  files.target_column = columns[1];
  return files;
}

Action add_pairs(CLI::App& data) {
  struct Flags {
    PairOptions options;
    PreparationOptions preparation;
    std::vector<std::string> train, valid, test;
    std::vector<int> columns = {1, 2};
    std::vector<int> valid_columns;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* pairs = data.add_subcommand("pairs", "Translation pairs of raw text, for --data pairs");
  const auto files = [&](const char* name, std::vector<std::string>& paths, const char* help) {
    return add_value(*pairs, name, paths, "FILE [FILE]", help)->expected(1, 2);
  };
  files("--train", flags->train, "Source and target, a sentence a line; or one file with columns")
      ->required();
  files("--valid", flags->valid, "Likewise, to test while training (every 23rd training pair)");
  files("--test", flags->test, "Likewise, kept as test.pairs (none)");
  add_value(*pairs, "--columns", flags->columns, "N,M",
            "Of one file: source and target, from 1 (1,2)")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(1, 1000));
  add_value(*pairs, "--valid-columns", flags->valid_columns, "N,M",
            "The same of --valid and --test (as --columns)")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(1, 1000));
  PairOptions& options = flags->options;
  add_value(*pairs, "--out", options.out, "FOLDER", "Folder to write")->required();
  add_value(*pairs, "--from", options.source.language, "NAME", "Source language: de, en, ...");
  add_value(*pairs, "--to", options.target.language, "NAME", "Target language");
  add_preparation(*pairs, flags->preparation);
  auto* merges = add_whole(*pairs, "--merges", options.merges, 1, 10'000'000,
                           "Cut words into pieces by so many merges, learnt jointly (none)");
  add_value(*pairs, "--codes", options.codes, "FILE", "Or by the merges of this file")
      ->excludes(merges);
  pairs->add_flag("--joint", options.joint, "One vocabulary for both languages");
  add_whole(*pairs, "--least-count", options.least_count, 1, 1'000'000'000,
            "Rarer pieces are unknown (1)");
  add_whole(*pairs, "--shortest", options.shortest, 1, 1'000'000, "Fewest words of a sentence (1)");
  add_whole(*pairs, "--longest", options.longest, 1, 1'000'000, "Most words of a sentence (175)");
  add_value(*pairs, "--ratio", options.ratio, "X", "Most words for one of the other; 0: any (1.5)")
      ->check(number_between(0, 1000));
  add_whole(*pairs, "--valid-every", options.valid_every, 2, 1'000'000,
            "Without --valid: every Nth pair (23)");
  return [flags, pairs]() -> int {
    if (!pairs->parsed()) return -1;
    PairOptions& chosen = flags->options;
    const std::vector<int>& others =
        flags->valid_columns.empty() ? flags->columns : flags->valid_columns;
    chosen.train = parallel(flags->train, flags->columns);
    chosen.valid = parallel(flags->valid, others);
    chosen.test = parallel(flags->test, others);
    for (PreparationOptions* side : {&chosen.source, &chosen.target}) {
      side->tokenise = flags->preparation.tokenise;
      side->lower_case = flags->preparation.lower_case;
    }
    note_language(chosen.source, "--from");
    note_language(chosen.target, "--to");
    chosen.say = tell;
    make_pairs(chosen);
    return kOk;
  };
}

Action add_tokens(CLI::App& data) {
  auto options = std::make_shared<TokenOptions>();
  auto kind = std::make_shared<std::string>("bytes");
  CLI::App* tokens = data.add_subcommand("tokens", "Text as a stream of tokens, for --data tokens");
  add_argument(*tokens, "text", options->texts, "Text files, one behind the other");
  add_value(*tokens, "--out", options->out, "FOLDER", "Folder to write")->required();
  add_value(*tokens, "--by", *kind, "KIND",
            "What a token is: bytes, characters, pieces or gpt2 (bytes)")
      ->check(CLI::IsMember({"bytes", "characters", "pieces", "gpt2"}));
  add_value(*tokens, "--tokenizer", options->tokenizer, "FOLDER",
            "gpt2: folder of vocab.json and merges.txt, as transformers saves them");
  add_value(*tokens, "--valid", options->valid, "FILE", "Text to test with (the last tenth)")
      ->expected(1);
  auto* merges = add_whole(*tokens, "--merges", options->merges, 1, 10'000'000,
                           "pieces: cut words by so many merges (none)");
  add_value(*tokens, "--codes", options->codes, "FILE", "pieces: or by the merges of this file")
      ->excludes(merges);
  add_value(*tokens, "--language", options->preparation.language, "NAME",
            "For --tokenise: de, en, ...");
  add_preparation(*tokens, options->preparation);
  tokens->add_flag("--raw", options->raw, "16-bit tokens without a header, as nanoGPT has them");
  return [options, kind, tokens]() -> int {
    if (!tokens->parsed()) return -1;
    for (const TokenKind one :
         {TokenKind::bytes, TokenKind::characters, TokenKind::pieces, TokenKind::gpt2}) {
      if (name_of(one) == *kind) options->kind = one;
    }
    const bool cut = options->merges > 0 || !options->codes.empty() ||
                     options->preparation.tokenise || options->preparation.lower_case;
    user_check(!cut || options->kind == TokenKind::pieces,
               "--merges, --codes, --tokenise and --lower are for --by pieces");
    user_check((options->kind == TokenKind::gpt2) == !options->tokenizer.empty(),
               "--by gpt2 and --tokenizer FOLDER, where its vocab.json and merges.txt are, go "
               "together");
    note_language(options->preparation, "--language");
    options->say = tell;
    make_tokens(*options);
    return kOk;
  };
}

Action add_bleu(CLI::App& data) {
  struct Flags {
    BleuOptions options;
    std::string translations, tokens = "13a";
    std::vector<std::string> references;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* bleu = data.add_subcommand("bleu", "BLEU of translations, as sacreBLEU has it");
  add_argument(*bleu, "translations", flags->translations, "A translation a line");
  add_argument(*bleu, "references", flags->references, "References, one or more files");
  bleu->add_flag("--lower", flags->options.lower_case, "Both in lower case");
  add_value(*bleu, "--tokens", flags->tokens, "NAME", "13a, or none: as they are (13a)")
      ->check(CLI::IsMember({"13a", "none"}));
  add_json_flag(*bleu, flags->json);
  return [flags, bleu]() -> int {
    if (!bleu->parsed()) return -1;
    flags->options.tokenise = flags->tokens == "13a";
    print_bleu(bleu_of_files(flags->translations, flags->references, flags->options),
               flags->options, flags->references.size(), flags->json);
    return kOk;
  };
}

Action add_get(CLI::App& data) {
  struct Flags {
    GetOptions options;
    std::string name;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* get = data.add_subcommand("get", "Fetch a data set from where it is published");
  add_value(*get, "name", flags->name, "", "Which; without it, those there are");
  add_value(*get, "--out", flags->options.out, "FOLDER", "Folder to write (data/NAME)");
  auto* from = add_value(*get, "--from", flags->options.from, "PATH",
                         "Take the files from this folder instead");
  add_value(*get, "--url", flags->options.url, "URL", "A mirror that has the files, by their names")
      ->excludes(from);
  return [flags, get]() -> int {
    if (!get->parsed()) return -1;
    if (flags->name.empty()) {
      for (const Place& place : all_places()) {
        print("  {:<18}{} ({})\n", place.name, place.summary, place.terms);
      }
      return kOk;
    }
    const Place& place = find_place(flags->name);
    GetOptions& options = flags->options;
    if (options.out.empty()) options.out = "data/" + flags->name;
    options.say = tell;
    {
      ProgressLine line;
      std::string whole;  // the last that has arrived
      options.progress = [&](std::string_view file, int64_t arrived, int64_t bytes) {
        if (arrived == 0 || whole == file) return;
        const std::string so_far = fmt::format("{}: {}", file, to_string(Bytes(arrived)));
        if (arrived == bytes) {
          whole = file;
          return line.print(so_far);
        }
        const double share = static_cast<double>(arrived) / static_cast<double>(bytes);
        line.show(bytes > 0 ? share : 0,
                  bytes > 0 ? fmt::format("{} of {}", so_far, to_string(Bytes(bytes))) : so_far);
      };
      get_data(place, options);
    }
    std::string next(place.next);
    for (size_t at; (at = next.find("{}")) != std::string::npos;) next.replace(at, 2, options.out);
    print("{}: {} ({})\nnext: {}\n", options.out, place.summary, place.terms, next);
    return kOk;
  };
}

}  // namespace

void print_bleu(const Bleu& bleu, const BleuOptions& options, size_t references, bool json) {
  const std::string signature =
      fmt::format("{}|version:thimble-{}", signature_of(options, references), version_number());
  if (json) {
    print_json({{"bleu", bleu.score},
                {"signature", signature},
                {"precisions", bleu.precisions},
                {"brevity_penalty", bleu.brevity},
                {"length", bleu.length},
                {"reference_length", bleu.reference_length}});
    return;
  }
  print("{}\n{}\n", to_string(bleu), signature);
}

Command add_data(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "Make data sets of raw text, or fetch them");
  command->require_subcommand(1);
  const std::array<Action, 6> actions = {add_get(*command),    add_pairs(*command),
                                         add_tokens(*command), add_bpe(*command),
                                         add_bleu(*command),   add_data_show(*command).run};
  return {command, [actions] {
            for (const Action& action : actions) {
              if (const int code = action(); code >= 0) return code;
            }
            return kCallersMistake;
          }};
}

}  // namespace thimble
