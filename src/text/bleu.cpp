#include "text/bleu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "text/utf8.h"

namespace thimble {
namespace {

constexpr size_t kOrders = 4;
using Counts = std::unordered_map<std::string, int64_t>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// {-~ [-` space-& (-+ :-@ /
bool stands_alone(char c) {
  const auto in = [c](char first, char last) { return c >= first && c <= last; };
  return in('{', '~') || in('[', '`') || in(' ', '&') || in('(', '+') || in(':', '@') || c == '/';
}

// A text rewritten by a regular expression of two characters in a row, from left to right: of each
// match `write` gets both. Bytes do for characters, since only ASCII is told apart.
template <class First, class Second, class Write>
std::string pairs_rewritten(const std::string& text, First first, Second second, Write write) {
  std::string result;
  result.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      write(result, text[i], text[i + 1]);
      i += 2;
    } else {
      result += text[i++];
    }
  }
  return result;
}

// N-grams of all orders; an order's tokens are apart by a character that no token has.
Counts count_ngrams(const std::vector<std::string>& tokens) {
  Counts counts;
  for (size_t begin = 0; begin < tokens.size(); ++begin) {
    std::string gram;
    for (size_t n = 0; n < kOrders && begin + n < tokens.size(); ++n) {
      if (n > 0) gram += ' ';
      gram += tokens[begin + n];
      ++counts[gram];
    }
  }
  return counts;
}

size_t order_of(std::string_view gram) {
  return static_cast<size_t>(std::ranges::count(gram, ' '));
}

}  // namespace

std::string tokenise_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  std::string apart = " ";
  for (const char c : text) {
    if (stands_alone(c)) {
      apart += {' ', c, ' '};
    } else {
      apart += c;
    }
  }
  apart += ' ';
  const auto no_digit = [](char c) { return !is_digit(c); };
  apart = pairs_rewritten(apart, no_digit, is_point, [](std::string& out, char before, char point) {
    out += {before, ' ', point, ' '};
  });
  apart = pairs_rewritten(apart, is_point, no_digit, [](std::string& out, char point, char behind) {
    out += {' ', point, ' ', behind};
  });
  const auto is_dash = [](char c) { return c == '-'; };
  apart = pairs_rewritten(apart, is_digit, is_dash, [](std::string& out, char digit, char dash) {
    out += {digit, ' ', dash, ' '};
  });
  return fmt::format("{}", fmt::join(split_white(apart), " "));
}

std::vector<std::string> BleuCounter::tokens_of(std::string_view line) const {
  std::string text = options_.lower_case ? lower_case(line) : std::string(line);
  if (options_.tokenise) text = tokenise_13a(text);
  std::vector<std::string> tokens;
  for (const std::string_view token : split_white(text)) tokens.emplace_back(token);
  return tokens;
}

void BleuCounter::add(std::string_view translation, std::span<const std::string> references) {
  const std::vector<std::string> tokens = tokens_of(translation);
  const auto length = std::ssize(tokens);
  Counts most;  // of each n-gram in any reference
  int64_t nearest = 0, distance = std::numeric_limits<int64_t>::max();
  for (const std::string& reference : references) {
    const std::vector<std::string> wanted = tokens_of(reference);
    for (const auto& [gram, count] : count_ngrams(wanted)) {
      most[gram] = std::max(most[gram], count);
    }
    const int64_t off = std::abs(std::ssize(wanted) - length);
    if (off < distance || (off == distance && std::ssize(wanted) < nearest)) {
      distance = off;
      nearest = std::ssize(wanted);
    }
  }
  for (const auto& [gram, count] : count_ngrams(tokens)) {
    const size_t order = order_of(gram);
    all_[order] += count;
    const auto at = most.find(gram);
    if (at != most.end()) right_[order] += std::min(count, at->second);
  }
  length_ += length;
  reference_length_ += nearest;
}

Bleu BleuCounter::result() const {
  Bleu bleu = {.length = length_, .reference_length = reference_length_};
  if (length_ < reference_length_) {
    const double ratio = static_cast<double>(reference_length_) / static_cast<double>(length_);
    bleu.brevity = length_ > 0 ? std::exp(1 - ratio) : 0;
  }
  if (std::ranges::all_of(right_, [](int64_t count) { return count == 0; })) return bleu;
  double smooth = 1, sum = 0;
  for (size_t n = 0; n < kOrders && all_[n] > 0; ++n) {
    const auto all = static_cast<double>(all_[n]);
    if (right_[n] == 0) smooth *= 2;
    bleu.precisions[n] =
        right_[n] == 0 ? 100 / (smooth * all) : 100 * static_cast<double>(right_[n]) / all;
  }
  // As sacreBLEU has it: an order that is not there at all makes the score next to nothing.
  for (const double p : bleu.precisions) sum += p > 0 ? std::log(p) : -9999999999;
  bleu.score = bleu.brevity * std::exp(sum / kOrders);
  return bleu;
}

Bleu bleu_of_files(const std::string& translations, std::span<const std::string> references,
                   const BleuOptions& options) {
  user_check(!references.empty(), "BLEU needs a file of references");
  const std::vector<std::string> lines = read_lines(translations);
  user_check(!lines.empty(), "'{}' is empty: there is nothing to judge", translations);
  std::vector<std::vector<std::string>> all;
  for (const std::string& path : references) {
    all.push_back(read_lines(path));
    user_check(all.back().size() == lines.size(),
               "'{}' has {} lines and '{}' has {}: a translation and its reference stand in the "
               "same line of each",
               translations, lines.size(), path, all.back().size());
  }
  BleuCounter counter(options);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> wanted;
    for (const auto& file : all) wanted.push_back(file[i]);
    counter.add(lines[i], wanted);
  }
  return counter.result();
}

std::string signature_of(const BleuOptions& options, size_t references) {
  return fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:exp", references,
                     options.lower_case ? "lc" : "mixed", options.tokenise ? "13a" : "none");
}

std::string to_string(const Bleu& bleu) {
  const double ratio = bleu.reference_length > 0 ? static_cast<double>(bleu.length) /
                                                       static_cast<double>(bleu.reference_length)
                                                 : 0;
  const auto& p = bleu.precisions;
  return fmt::format(
      "BLEU = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len "
      "= "
      "{})",
      bleu.score, p[0], p[1], p[2], p[3], bleu.brevity, ratio, bleu.length, bleu.reference_length);
}

}  // namespace thimble
