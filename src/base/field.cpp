#include "base/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/field_words.h"
#include "base/io/json.h"

namespace thimble {
namespace {

using nlohmann::json;

// As a person writes it; JSON has no name for what is not finite.
std::string written(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  const double number = value.is_number_float() ? value.get<double>() : 0;
  return std::isfinite(number) ? json_text(value) : fmt::format("{}", number);
}

template <class Number>
bool parses_whole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Digits as people write a number: no leading zero that could be taken for another base.
bool is_plain(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() < 2 || text[0] != '0' || text[1] == '.' || text[1] == 'e' || text[1] == 'E';
}

bool is_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return is_plain(text) && error == std::errc() && end == text.data() + text.size();
}

// As a sentence quotes it: numbers as they are, however they came, text in quotes, and nothing too long.
std::string quoted(const json& value) {
  constexpr size_t kMost = 60;
  std::string text = written(value);
  if (value.is_string() && !is_number(text)) text = fmt::format("'{}'", text);
  if (text.size() <= kMost) return text;
  const auto inside_character = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };  // of UTF-8
  size_t end = kMost;
  while (end > 0 && inside_character(end)) --end;
  return text.substr(0, end) + "...";
}

std::string range_of(const WholeRange& range) {
  std::string text = fmt::format("from {} on", range.least);
  if (range.most < std::numeric_limits<int64_t>::max()) {
    text += fmt::format(", {} at most", range.most);
  }
  return text;
}

std::string range_of(const RealRange& range) {
  const bool lower = std::isfinite(range.least), upper = std::isfinite(range.most);
  if (lower && upper && range.above && range.below) {
    return fmt::format(" between {} and {}", range.least, range.most);
  }
  std::string text;
  if (lower) {
    text = range.above ? fmt::format(" above {}", range.least)
                       : fmt::format(" from {} on", range.least);
  }
  if (upper) {
    text += lower ? ", " : " ";
    text +=
        range.below ? fmt::format("below {}", range.most) : fmt::format("{} at most", range.most);
  }
  return text;
}

// Of a list, or of text as it is typed: entries with commas between them.
json entries_of(const json& value) {
  if (value.is_array()) return value;
  if (!value.is_string()) return json::array({value});
  json entries = json::array();
  std::string_view rest = value.get_ref<const std::string&>();
  for (size_t comma; (comma = rest.find(',')) != rest.npos; rest.remove_prefix(comma + 1)) {
    entries.push_back(rest.substr(0, comma));
  }
  entries.push_back(rest);
  return entries;
}

// `read` sets the member from a value; `who` begins its sentences.
void add_field(Fields& fields, std::string_view name, const char* placeholder, About about,
               Field::Get get, std::function<void(const json& value, const std::string& who)> read,
               Field::Kind kind = Field::Kind::value) {
  if (about.placeholder.empty()) about.placeholder = placeholder;
  fields.add({std::string(name), kind, fields.current_group(), std::move(get),
              [read = std::move(read), who = fmt::format("--{}", name)](const json& value) {
                read(value, who);
              },
              std::move(about)});
}

}  // namespace

int64_t read_whole(const json& value, const WholeRange& range, std::string_view who) {
  int64_t number = 0;
  bool good = false;
  std::string out_of_range;  // a whole number, as it was written
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    good = is_plain(text) && parses_whole(text, number);
    if (good) out_of_range = text;
  } else if (value.is_number_unsigned()) {
    good = value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    number = good ? value.get<int64_t>() : 0;
    out_of_range = value.dump();
  } else if (value.is_number_integer()) {
    good = true;
    number = value.get<int64_t>();
    out_of_range = value.dump();
  }
  user_check(good && number >= range.least && number <= range.most,
             "{} wants a whole number {}, not {}", who, range_of(range),
             out_of_range.empty() ? quoted(value) : out_of_range);
  return number;
}

double read_real(const json& value, const RealRange& range, std::string_view who) {
  double number = 0;
  bool good = false;
  std::string typed = quoted(value);
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    good = is_plain(text) && error == std::errc() && end == text.data() + text.size();
    if (good) typed = text;
  } else if (value.is_number()) {
    good = true;
    number = value.get<double>();
  }
  good = good && std::isfinite(number) &&
         (range.above ? number > range.least : number >= range.least) &&
         (range.below ? number < range.most : number <= range.most);
  user_check(good, "{} wants a number{}, not {}", who, range_of(range), typed);
  return number;
}

bool read_bool(const json& value, std::string_view who) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (text == "on" || text == "true") return true;
    if (text == "off" || text == "false") return false;
  }
  user_error("{} is on or off (true or false), not {}", who, quoted(value));
}

std::string read_text(const json& value, std::string_view who) {
  user_check(value.is_string(), "{} wants text, not {}", who, quoted(value));
  return value.get<std::string>();
}

int64_t Span::steps(int64_t steps_per_epoch) const {
  if (in_steps) return static_cast<int64_t>(count);
  return std::max<int64_t>(count > 0 ? 1 : 0,
                           std::llround(count * static_cast<double>(steps_per_epoch)));
}

Span read_span(const json& value, std::string_view who) {
  constexpr double kMostEpochs = 1e6;
  constexpr int64_t kMostSteps = 100'000'000;
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    const auto ends_in = [&](std::string_view unit) {
      if (!text.ends_with(unit)) return false;
      text.resize(text.size() - unit.size());
      while (text.ends_with(' ')) text.pop_back();
      return true;
    };
    if (ends_in("steps") || ends_in("step")) {
      return steps_span(read_whole(text, {.least = 0, .most = kMostSteps}, who));
    }
    if (ends_in("epochs") || ends_in("epoch")) {
      return {read_real(text, {.least = 0, .most = kMostEpochs}, who)};
    }
  }
  try {
    return {read_real(value, {.least = 0, .most = kMostEpochs}, who)};
  } catch (const UserError&) {
    user_error(
        "{} wants a number of epochs from 0 on, {} at most, or of steps ('500 steps'), not {}", who,
        kMostEpochs, quoted(value));
  }
}

json to_json(const Span& span) {
  if (span.in_steps) return fmt::format("{} steps", static_cast<int64_t>(span.count));
  return span.count;
}

Field::Field(std::string name, Kind kind, std::string_view group, Get get, Set set, About about)
    : name_(std::move(name)),
      kind_(kind),
      group_(group),
      get_(std::move(get)),
      set_(std::move(set)),
      about_(std::move(about)) {}

json Field::get() const { return get_(); }

void Field::set(const json& value) const { set_(value); }

std::string Field::text() const {
  const auto spell = [](const json& value) {
    if (value.is_number_float()) return fmt::format("{}", value.get<double>());
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  const json value = get();
  if (value.is_null()) return "";
  if (!value.is_array()) return spell(value);
  std::string joined;
  for (const json& entry : value) joined += (joined.empty() ? "" : ",") + spell(entry);
  return joined;
}

void Fields::toggle(std::string_view name, bool& member, About about) {
  add_field(
      *this, name, "", std::move(about), [&member] { return json(member); },
      [&member](const json& value, const std::string& who) { member = read_bool(value, who); },
      Field::Kind::toggle);
}

void Fields::inverted(std::string_view name, bool& member, About about) {
  add_field(
      *this, name, "", std::move(about), [&member] { return json(!member); },
      [&member](const json& value, const std::string& who) { member = !read_bool(value, who); },
      Field::Kind::toggle);
}

void Fields::on_off(std::string_view name, bool& member, About about) {
  add_field(
      *this, name, "on|off", std::move(about), [&member] { return member ? "on" : "off"; },
      [&member](const json& value, const std::string& who) { member = read_bool(value, who); });
}

void Fields::whole(std::string_view name, int64_t& member, WholeRange range, About about) {
  add_field(
      *this, name, "N", std::move(about),
      [&member, range] { return member == range.open ? json() : json(member); },
      [&member, range](const json& value, const std::string& who) {
        member = value.is_null() ? range.open : read_whole(value, range, who);
      });
}

void Fields::whole(std::string_view name, int& member, WholeRange range, About about) {
  range.most = std::min<int64_t>(range.most, std::numeric_limits<int>::max());
  add_field(
      *this, name, "N", std::move(about), [&member] { return json(member); },
      [&member, range](const json& value, const std::string& who) {
        member = static_cast<int>(read_whole(value, range, who));
      });
}

void Fields::wholes(std::string_view name, std::vector<int64_t>& member, WholeRange range,
                    About about) {
  add_field(
      *this, name, "N,M,...", std::move(about),
      [&member] { return member.empty() ? json() : json(member); },
      [&member, range](const json& value, const std::string& who) {
        std::vector<int64_t> read;
        for (const json& entry : entries_of(value)) {
          if (!entry.is_null()) read.push_back(read_whole(entry, range, who));
        }
        member = std::move(read);
      },
      Field::Kind::list);
}

void Fields::seed(std::string_view name, uint64_t& member, About about) {
  add_field(
      *this, name, "N", std::move(about), [&member] { return json(member); },
      [&member](const json& value, const std::string& who) {
        uint64_t number = 0;
        bool good =
            value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
        if (good) number = value.get<uint64_t>();
        if (value.is_string()) {
          const std::string& text = value.get_ref<const std::string&>();
          good = is_plain(text) && parses_whole(text, number);
        }
        user_check(good, "{} wants a whole number from 0 on, {} at most, not {}", who,
                   std::numeric_limits<uint64_t>::max(), quoted(value));
        member = number;
      });
}

void Fields::real(std::string_view name, double& member, RealRange range, About about) {
  add_field(
      *this, name, "X", std::move(about),
      [&member, range] { return range.open == member ? json() : json(member); },
      [&member, range](const json& value, const std::string& who) {
        member = value.is_null() && range.open ? *range.open : read_real(value, range, who);
      });
}

void Fields::span(std::string_view name, Span& member, About about) {
  add_field(
      *this, name, "X", std::move(about), [&member] { return to_json(member); },
      [&member](const json& value, const std::string& who) { member = read_span(value, who); });
}

void Fields::spans(std::string_view name, std::vector<Span>& member, About about) {
  add_field(
      *this, name, "X,Y,...", std::move(about),
      [&member] {
        json list = json::array();
        for (const Span& span : member) list.push_back(to_json(span));
        return list;
      },
      [&member](const json& value, const std::string& who) {
        std::vector<Span> read;
        for (const json& entry : entries_of(value)) read.push_back(read_span(entry, who));
        member = std::move(read);
      },
      Field::Kind::list);
}

void Fields::text(std::string_view name, std::string& member, About about) {
  add_field(
      *this, name, "NAME", std::move(about),
      [&member] { return member.empty() ? json() : json(member); },
      [&member](const json& value, const std::string& who) {
        member = value.is_null() ? "" : read_text(value, who);
        user_check(value.is_null() || !member.empty(), "{} wants a name, not ''", who);
      });
}

void Fields::texts(std::string_view name, std::vector<std::string>& member, About about) {
  add_field(
      *this, name, "GLOB", std::move(about), [&member] { return json(member); },
      [&member](const json& value, const std::string& who) {
        std::vector<std::string> read;
        for (const json& entry : entries_of(value)) {
          read.push_back(read_text(entry, who));
          user_check(!read.back().empty(), "{} wants names or patterns, not ''", who);
        }
        member = std::move(read);
      },
      Field::Kind::list);
}

void Fields::image(std::string_view name, Shape& member, About about) {
  add_field(
      *this, name, "H,W,C", std::move(about),
      [&member] {
        if (member.rank() == 0) return json();
        return json(std::vector<int64_t>(member.dims().begin(), member.dims().end()));
      },
      [&member](const json& value, const std::string& who) {
        constexpr WholeRange kSide = {.least = 1, .most = std::numeric_limits<int32_t>::max()};
        std::vector<int64_t> sides;
        if (!value.is_null()) {
          const json parts = entries_of(value);
          user_check(parts.size() == 3, "{} wants three whole numbers H,W,C, not {}", who,
                     quoted(value));
          for (const json& part : parts) sides.push_back(read_whole(part, kSide, who));
        }
        member = Shape(sides);
      });
}

void Fields::budget(std::string_view name, std::optional<Bytes>& member, NamedSizes names,
                    About about) {
  const auto read = [&member, names](const json& value, const std::string& who) {
    member.reset();
    if (value.is_null()) return;
    for (const auto& [word, size] : names) {
      if (value == word) member = size;
    }
    if (member) return;
    try {
      member = parse_bytes(written(value));
    } catch (const UserError& error) {
      user_error("{}: {}", who, error.what());
    }
  };
  add_field(
      *this, name, "BYTES", std::move(about),
      [&member, names = std::move(names)] {
        if (!member) return json();
        for (const auto& [word, size] : names) {
          if (*member == size) return json(word);
        }
        return json(member->count);
      },
      read);
}

void Fields::choice(std::string_view name, std::string_view noun, std::vector<std::string> names,
                    std::function<std::string()> get, std::function<void(const std::string&)> set,
                    About about) {
  add_field(*this, name, "NAME", std::move(about), std::move(get),
            [set = std::move(set), names = std::move(names), noun = std::string(noun)](
                const json& value, const std::string& who) {
              const std::string chosen = written(value);
              user_check(std::ranges::find(names, chosen) != names.end(),
                         "{}: there is no {} '{}'; known: {}{}", who, noun, chosen,
                         fmt::join(names, ", "), nearest_clause(chosen, names));
              set(chosen);
            });
}

void Fields::spelt(std::string_view name, std::function<std::string()> get,
                   std::function<void(const std::string&)> set, About about) {
  add_field(*this, name, "NAME", std::move(about), std::move(get),
            [set = std::move(set)](const json& value, const std::string& who) {
              user_check(value.is_primitive() && !value.is_null(),
                         "{} wants a name or a number, not {}", who, quoted(value));
              set(written(value));
            });
}

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  std::string wanted(name);
  std::ranges::replace(wanted, '_', '-');
  const auto at = std::ranges::find(fields, wanted, &Field::name);
  return at == fields.end() ? nullptr : &*at;
}

std::string no_such_setting(std::string_view typed, std::span<const std::string> names) {
  const std::string_view name = typed.substr(std::min(typed.find_first_not_of('-'), typed.size()));
  if (const auto ours = in_our_words(name, names))
    return fmt::format("there is no {}; {}", typed, *ours);
  return fmt::format("there is no {}; the nearest is --{}", typed, nearest_name(name, names));
}

}  // namespace thimble
