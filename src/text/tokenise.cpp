#include "text/tokenise.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "text/characters.h"
#include "text/utf8.h"

namespace thimble {
namespace {

using Text = std::u32string;
using Test = bool (*)(char32_t);

// Abbreviations whose period belongs to them, in English and in German.
constexpr std::string_view kTitles[] = {
    "Adj",  "Adm",   "Adv",  "Asst", "Bart", "Bldg", "Brig", "Bros", "Capt", "Cmdr",
    "Col",  "Comdr", "Con",  "Corp", "Cpl",  "DR",   "Dr",   "Ens",  "Gen",  "Gov",
    "Hon",  "Hosp",  "Insp", "Lt",   "MM",   "MR",   "MRS",  "MS",   "Maj",  "Messrs",
    "Mlle", "Mme",   "Mr",   "Mrs",  "Ms",   "Msgr", "Op",   "Ord",  "Pfc",  "Ph",
    "Prof", "Pvt",   "Rep",  "Reps", "Res",  "Rev",  "Rt",   "Sen",  "Sens", "Sfc",
    "Sgt",  "Sr",    "St",   "Supt", "Surg", "vs",   "Nos",  "Nr"};
constexpr std::string_view kEnglish[] = {"Drs", "Hr",  "v",   "rev", "Jan", "Feb", "Mar", "Apr",
                                         "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Rs"};
constexpr std::string_view kGerman[] = {
    "BSE", "Buchst", "Ca",  "Chr", "Co",   "Dkr", "Ltd",   "Mio",   "Mrd", "MwSt", "No",
    "SA",  "Std",    "Zt",  "Art", "bzgl", "bzw", "ca",    "dergl", "dgl", "etc",  "evtl",
    "ff",  "ggf",    "jun", "pp",  "sen",  "sog", "sogen", "spp",   "usf", "usw",  "vgl"};
// Only in front of a number.
constexpr std::string_view kBeforeNumbers[] = {"No", "Art", "pp"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kEscapes = {{
    {"&", "&amp;"},
    {"|", "&#124;"},
    {"<", "&lt;"},
    {">", "&gt;"},
    {"'", "&apos;"},
    {"\"", "&quot;"},
    {"[", "&#91;"},
    {"]", "&#93;"},
}};

bool any(char32_t) { return true; }
bool not_alphabetic(char32_t c) { return !is_alphabetic(c); }
bool not_number(char32_t c) { return !is_number(c); }
bool neither(char32_t c) { return !is_alphabetic(c) && !is_number(c); }
bool letter_s(char32_t c) { return c == U's'; }

// Every `before` `mark` `behind`, as a regular expression finds them from left to right, gets `gap` in
// place of the mark. Null: nothing need stand there.
Text replaced(const Text& text, Test before, char32_t mark, Test behind, std::u32string_view gap) {
  Text result;
  result.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size();) {
    const size_t at = i + (before != nullptr ? 1 : 0);
    const size_t end = at + 1 + (behind != nullptr ? 1 : 0);
    const bool fits = end <= text.size() && text[at] == mark &&
                      (before == nullptr || before(text[i])) &&
                      (behind == nullptr || behind(text[at + 1]));
    if (!fits) {
      result += text[i++];
      continue;
    }
    if (before != nullptr) result += text[i];
    result += gap;
    if (behind != nullptr) result += text[at + 1];
    i = end;
  }
  return result;
}

// One space for each run of white space; control characters go.
Text cleaned(std::string_view line) {
  Text result;
  for (const char32_t c : decode_utf8(line)) {
    if (is_space(c)) {
      if (!result.empty() && result.back() != U' ') result += U' ';
    } else if (c >= 0x20) {
      result += c;
    }
  }
  if (!result.empty() && result.back() == U' ') result.pop_back();
  return result;
}

Text symbols_apart(const Text& text) {
  Text result;
  for (const char32_t c : text) {
    const bool stays = is_alphanumeric(c) || c == U' ' || c == U'.' || c == U'\'' || c == U'`' ||
                       c == U',' || c == U'-';
    if (stays) {
      result += c;
    } else {
      result += {U' ', c, U' '};
    }
  }
  return result;
}

// Two periods and more are one token. Inside, such a period is a private character until the end.
constexpr char32_t kManyDots = 0xe000;

Text dots_together(const Text& text) {
  Text result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && text[end] == U'.') ++end;
    if (end - i < 2) {
      result += text[i++];
      continue;
    }
    result += U' ';
    result.append(end - i, kManyDots);
    if (end < text.size()) result += U' ';
    i = end;
  }
  return result;
}

Text commas_apart(Text text) {
  text = replaced(text, not_number, U',', nullptr, U" , ");
  text = replaced(text, nullptr, U',', not_number, U" , ");
  if (text.size() >= 2 && text.back() == U',' && is_number(text[text.size() - 2])) {
    text.pop_back();
    text += U" , ";
  }
  return text;
}

Text apostrophes_apart(Text text, std::string_view language) {
  constexpr char32_t mark = U'\'';
  if (language == "en") {
    text = replaced(text, not_alphabetic, mark, not_alphabetic, U" ' ");
    text = replaced(text, neither, mark, is_alphabetic, U" ' ");
    text = replaced(text, is_alphabetic, mark, not_alphabetic, U" ' ");
    text = replaced(text, is_alphabetic, mark, is_alphabetic, U" '");
    return replaced(text, is_number, mark, letter_s, U" '");
  }
  if (language == "fr" || language == "it") {
    text = replaced(text, not_alphabetic, mark, any, U" ' ");
    text = replaced(text, is_alphabetic, mark, not_alphabetic, U" ' ");
    return replaced(text, is_alphabetic, mark, is_alphabetic, U"' ");
  }
  return replaced(text, nullptr, mark, nullptr, U" ' ");
}

bool is_one_of(std::span<const std::string_view> list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

// A letter, the fifth ("5.") or the fourth ("IV."), which in German end in a period, too.
bool is_short(const Text& letters, bool german) {
  if (letters.size() == 1 && is_alphabetic(letters[0])) return german || !is_lowercase(letters[0]);
  const auto all = [&](std::u32string_view set) {
    return std::ranges::all_of(letters, [&](char32_t c) { return set.find(c) != set.npos; });
  };
  return german && (all(U"IVX") || all(U"ivx") || (letters.size() <= 2 && all(U"0123456789")));
}

bool is_abbreviation(std::string_view word, std::string_view language) {
  if (is_short(decode_utf8(word), language == "de") || is_one_of(kTitles, word)) return true;
  return language == "de" ? is_one_of(kGerman, word) : is_one_of(kEnglish, word);
}

bool starts_with(std::string_view word, Test test) {
  const Text letters = decode_utf8(word);
  return !letters.empty() && test(letters.front());
}

// Whether the period at the end of a word belongs to it.
bool keeps_its_period(std::string_view word, std::string_view next, std::string_view language) {
  const Text letters = decode_utf8(word);
  const bool inner =
      word.find('.') != std::string_view::npos && std::ranges::any_of(letters, is_alphabetic);
  if (inner || is_abbreviation(word, language) || starts_with(next, is_lowercase)) return true;
  return is_one_of(kBeforeNumbers, word) && !next.empty() && next[0] >= '0' && next[0] <= '9';
}

std::string periods_apart(const std::string& text, std::string_view language) {
  const std::vector<std::string_view> words = split_spaces(text);
  std::string result;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) result += ' ';
    std::string_view word = words[i];
    const bool ends = word.size() > 1 && word.ends_with('.');
    if (ends) word.remove_suffix(1);
    result += word;
    if (!ends) continue;
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
    result += keeps_its_period(word, next, language) ? "." : " .";
  }
  return result;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

bool all_of(std::string_view token, std::u32string_view set) {
  return std::ranges::all_of(decode_utf8(token),
                             [&](char32_t c) { return set.find(c) != std::u32string_view::npos; });
}

bool opens(std::string_view token) {
  return std::ranges::all_of(decode_utf8(token), [](char32_t c) {
    return is_currency(c) || std::u32string_view(U"([{¿¡").find(c) != std::u32string_view::npos;
  });
}

// Puts tokens together from left to right.
class Joiner {
 public:
  explicit Joiner(std::string_view language) : language_(language) {}

  void add(std::string_view token, std::string_view before, std::string_view next) {
    const bool english = language_ == "en";
    const bool romance = language_ == "fr" || language_ == "it" || language_ == "ga";
    if (opens(token)) {
      to_the_right(token);
    } else if (all_of(token, U",.?!:;\\%}])")) {
      if (language_ == "fr" && token.size() == 1 && all_of(token, U"?!:;\\%")) text_ += ' ';
      to_the_left(token);
    } else if (english && !before.empty() && token.starts_with('\'') &&
               starts_with(token.substr(1), is_alphabetic)) {
      to_the_left(token);
    } else if (romance && token.size() > 1 && token.ends_with('\'') &&
               starts_with(next, is_alphabetic)) {
      to_the_right(token);
    } else if (all_of(token, U"'\"„“`")) {
      add_quote(token, before);
    } else {
      text_ += gap_;
      text_ += token;
      gap_ = " ";
    }
  }

  std::string finish() && { return std::move(text_); }

 private:
  void to_the_left(std::string_view token) {
    text_ += token;
    gap_ = " ";
  }
  void to_the_right(std::string_view token) {
    text_ += gap_;
    text_ += token;
    gap_ = "";
  }
  // Quotes open and close by turns.
  void add_quote(std::string_view token, std::string_view before) {
    const std::string kind = all_of(token, U"„“”") ? "\"" : std::string(token);
    auto at = std::ranges::find(open_, kind);
    if (at != open_.end()) {
      open_.erase(at);
      to_the_left(token);
    } else if (language_ == "en" && token == "'" && before.ends_with('s')) {
      to_the_left(token);
    } else {
      open_.push_back(kind);
      to_the_right(token);
    }
  }

  std::string_view language_;
  std::string text_;
  const char* gap_ = "";
  std::vector<std::string> open_;
};

}  // namespace

std::string moses_tokenise(std::string_view line, std::string_view language) {
  Text text = dots_together(symbols_apart(cleaned(line)));
  text = apostrophes_apart(commas_apart(std::move(text)), language);
  std::string result = periods_apart(encode_utf8(text), language);
  if (result.ends_with(".'")) result.replace(result.size() - 2, 2, " . '");
  std::string dots;
  append_utf8(dots, kManyDots);
  replace_all(result, dots, ".");
  for (const auto& [plain, escaped] : kEscapes) replace_all(result, plain, escaped);
  return result;
}

std::string moses_detokenise(std::string_view line, std::string_view language) {
  std::string text(line);
  replace_all(text, " @-@ ", "-");
  for (size_t i = kEscapes.size(); i-- > 0;) {  // & last
    replace_all(text, kEscapes[i].second, kEscapes[i].first);
  }
  const std::vector<std::string_view> tokens = split_white(text);
  Joiner joiner(language);
  for (size_t i = 0; i < tokens.size(); ++i) {
    joiner.add(tokens[i], i > 0 ? tokens[i - 1] : std::string_view(),
               i + 1 < tokens.size() ? tokens[i + 1] : std::string_view());
  }
  return std::move(joiner).finish();
}

}  // namespace thimble
