#include "base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <utility>
#include <vector>

namespace thimble {
namespace {

// In lower case, its words run together.
std::string plain(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c == '-' || c == '_' || c == ' ') continue;
    letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// In halves of a letter: one that is missing is half a mistake; one too many, another one, and a swap
// with its neighbour are whole ones.
size_t distance(std::string_view typed, std::string_view known) {
  constexpr size_t kMissing = 1, kMistake = 2;
  std::vector<std::vector<size_t>> rows(typed.size() + 1, std::vector<size_t>(known.size() + 1));
  for (size_t i = 0; i <= typed.size(); ++i) rows[i][0] = i * kMistake;
  for (size_t j = 0; j <= known.size(); ++j) rows[0][j] = j * kMissing;
  for (size_t i = 1; i <= typed.size(); ++i) {
    for (size_t j = 1; j <= known.size(); ++j) {
      const size_t change = rows[i - 1][j - 1] + (typed[i - 1] == known[j - 1] ? 0 : kMistake);
      rows[i][j] = std::min({rows[i - 1][j] + kMistake, rows[i][j - 1] + kMissing, change});
      const bool swapped =
          i > 1 && j > 1 && typed[i - 1] == known[j - 2] && typed[i - 2] == known[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + kMistake);
    }
  }
  return rows[typed.size()][known.size()];
}

struct Nearest {
  std::string name;
  size_t apart = std::numeric_limits<size_t>::max();  // in halves of a letter
};

// Other programs' words for a name of ours, as plain() has them.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"gpu", "cuda"},           {"nvidia", "cuda"},        {"half", "fp16"},
    {"float16", "fp16"},       {"bfloat16", "bf16"},      {"float32", "fp32"},
    {"mixed", "bf16"},         {"amp", "bf16"},           {"float", "fp32"},
    {"single", "fp32"},        {"momentum", "sgd"},       {"nag", "nesterov"},
    {"datasets", "data"},      {"imagenet", "images"},    {"imagefolder", "images"},
    {"pictures", "images"},    {"photos", "images"},      {"text", "tokens"},
    {"shakespeare", "tokens"}, {"wikitext", "tokens"},    {"fashionmnist", "fashion_mnist"},
    {"llama", "hf:FOLDER"},    {"mistral", "hf:FOLDER"},  {"qwen", "hf:FOLDER"},
    {"gemma", "hf:FOLDER"},    {"smollm", "hf:FOLDER"},   {"transformer", "gpt"},
    {"wideresnet", "wrn-D-K"}, {"fit", "train"},          {"learn", "train"},
    {"finetune", "train"},     {"finetuning", "train"},   {"run", "train"},
    {"generate", "sample"},    {"chat", "sample"},        {"bench", "profile"},
    {"benchmark", "profile"},  {"convert", "export"},     {"diff", "compare"},
    {"plot", "report"},        {"visualize", "report"},   {"check", "verify"},
    {"tune", "calibrate"},     {"autotune", "calibrate"}, {"info", "plan"},
    {"summary", "plan"},       {"test", "evaluate"},      {"validate", "evaluate"},
    {"score", "evaluate"},     {"infer", "predict"},      {"inference", "predict"},
    {"classify", "predict"},
};

// The one of `names` that is the other word's; null: none is.
const std::string* synonym(std::string_view typed, std::span<const std::string> names) {
  for (const auto& [theirs, ours] : kSynonyms) {
    if (theirs != typed) continue;
    const auto found = std::ranges::find(names, ours);
    if (found != names.end()) return &*found;
  }
  return nullptr;
}

Nearest find_nearest(std::string_view wrong, std::span<const std::string> names) {
  constexpr size_t kLongest = 64;  // of anything that was meant to be a name
  constexpr size_t kShortestStart = 3;
  const std::string typed = plain(wrong.substr(0, kLongest));
  if (const std::string* const meant = synonym(typed, names)) return {*meant, 0};
  Nearest best;
  for (const std::string& name : names) {
    const std::string known = plain(name);
    const bool abbreviated =
        typed != known && typed.size() >= kShortestStart && known.starts_with(typed);
    const size_t apart = abbreviated ? 1 : distance(typed, known);
    if (apart < best.apart) best = {name, apart};
  }
  return best;
}

}  // namespace

std::string our_name(std::string_view theirs, std::span<const std::string> names) {
  const std::string* const ours = synonym(plain(theirs), names);
  return ours == nullptr ? "" : *ours;
}

std::string nearest_name(std::string_view wrong, std::span<const std::string> names) {
  return find_nearest(wrong, names).name;
}

std::string likely_name(std::string_view wrong, std::span<const std::string> names) {
  Nearest best = find_nearest(wrong, names);
  return best.apart <= wrong.size() ? std::move(best.name) : std::string();
}

std::string nearest_clause(std::string_view wrong, std::span<const std::string> names) {
  const std::string likely = likely_name(wrong, names);
  return likely.empty() ? "" : fmt::format("; the nearest is '{}'", likely);
}

}  // namespace thimble
