// A setting of a user. It has one name, one way to be read and one sentence for each fault, from a
// flag, a TOML or JSON file, or a caller. The owner of the member lists it once:
//
//   fields.whole("layers", options.layers, {.least = 1, .most = 10'000},
//                {.help = "layers", .affects = affects::all});
//
// A list is made for one object and refers to its members. So the description of a field (whether
// it has an effect here, for one) may depend on the others.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest_name.h"
#include "base/number/bytes.h"
#include "base/number/shape.h"

namespace thimble {

// The effects of a change of a field.
namespace affects {
inline constexpr unsigned nothing = 0;
inline constexpr unsigned graph = 1;     // another step: other nodes, or other shapes
inline constexpr unsigned numerics = 2;  // other numbers: a run does not go on with another value
inline constexpr unsigned step_time =
    4;  // how long a step takes: part of the names of measured times
inline constexpr unsigned all = graph | numerics | step_time;
}  // namespace affects

// The description of a field beside its name, its member and its range.
struct About {
  std::string help;              // a line, in `--help`
  std::string more = {};         // what the reference says in its place, where that is more
  std::string usual = {};        // the default, for people; empty: the default's own spelling
  std::string placeholder = {};  // of the value in `--help`; empty: by kind
  unsigned affects = affects::nothing;
  std::string_view technique = {};  // the row of `profile` it belongs to
  std::string unused_reason =
      {};  // why it has no effect on this object: "without --density"; empty: it has
  std::string timed = {};       // what of it matters for time; empty: its value
  bool warn_if_unused = false;  // idle, it is worth a warning, not a refusal
  bool training = false;        // a flag of `train` alone
  bool flag = true;             // false: a record in files, not to be typed
  bool recorded = true;         // false: said of a search, not of the run that comes of it
};

class Field {
 public:
  enum class Kind : uint8_t { toggle, value, list, record };
  using Get = std::function<nlohmann::json()>;             // null: nothing was chosen
  using Set = std::function<void(const nlohmann::json&)>;  // UserError

  Field(std::string name, Kind kind, std::string_view group, Get get, Set set, About about);

  const std::string& name() const { return name_; }  // "weight-decay"
  Kind kind() const { return kind_; }
  std::string_view group() const { return group_; }
  const About& about() const { return about_; }
  bool has_effect_on(unsigned what) const { return (about_.affects & what) != 0; }

  nlohmann::json get() const;
  // As read from a file, or as text. UserError, naming the field, where it is no valid value.
  void set(const nlohmann::json& value) const;

  // The value as it would be typed.
  std::string text() const;

 private:
  std::string name_;
  Kind kind_;
  std::string_view group_;
  Get get_;
  Set set_;
  About about_;
};

struct WholeRange {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
  int64_t open = -1;  // stands for "nothing chosen"; cannot be typed where it is out of range
};

struct RealRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false;               // `least` is excluded
  bool below = false;               // `most` is excluded
  std::optional<double> open = {};  // stands for "nothing chosen"
};

// An amount of training: epochs, or steps ("500 steps").
struct Span {
  double count = 0;
  bool in_steps = false;

  // At least one step, of any amount above 0.
  int64_t steps(int64_t steps_per_epoch) const;
  bool operator==(const Span&) const = default;
};
inline constexpr Span steps_span(int64_t steps) { return {static_cast<double>(steps), true}; }

// Fields in their order. A value may bring along the usual values of fields behind it (an optimizer
// its rates), so whoever sets several sets them in this order.
class Fields {
 public:
  // Of those added from here on.
  void group(std::string_view name) { group_ = name; }

  void toggle(std::string_view name, bool& member, About about);
  void inverted(std::string_view name, bool& member, About about);  // set: the member is false
  void on_off(std::string_view name, bool& member, About about);
  void whole(std::string_view name, int64_t& member, WholeRange range, About about);
  void whole(std::string_view name, int& member, WholeRange range, About about);
  void wholes(std::string_view name, std::vector<int64_t>& member, WholeRange range, About about);
  void seed(std::string_view name, uint64_t& member, About about);
  void real(std::string_view name, double& member, RealRange range, About about);
  void span(std::string_view name, Span& member, About about);
  void spans(std::string_view name, std::vector<Span>& member, About about);
  void text(std::string_view name, std::string& member, About about);
  void texts(std::string_view name, std::vector<std::string>& member, About about);
  void image(std::string_view name, Shape& member, About about);
  // A budget: a size, or one of `names`, each of which stands for a size that is none.
  using NamedSizes = std::vector<std::pair<std::string, Bytes>>;
  void budget(std::string_view name, std::optional<Bytes>& member, NamedSizes names, About about);
  // One of `names`; `noun` is what they are.
  void choice(std::string_view name, std::string_view noun, std::vector<std::string> names,
              std::function<std::string()> get, std::function<void(const std::string&)> set,
              About about);
  // The same of an enumeration that name_of() spells, whose values are 0, 1, ...
  template <class Enum>
  void choice(std::string_view name, std::string_view noun, size_t count, Enum& member,
              About about) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.emplace_back(name_of(static_cast<Enum>(i)));
    choice(
        name, noun, names, [&member] { return std::string(name_of(member)); },
        [&member, names](const std::string& chosen) {
          for (size_t i = 0; i < names.size(); ++i) {
            if (names[i] == chosen) member = static_cast<Enum>(i);
          }
        },
        std::move(about));
  }
  // Read and written by the caller's own functions, which get text.
  void spelt(std::string_view name, std::function<std::string()> get,
             std::function<void(const std::string&)> set, About about);
  void add(Field field) { all_.push_back(std::move(field)); }
  std::string_view current_group() const { return group_; }
  size_t count() const { return all_.size(); }

  std::vector<Field> take() && { return std::move(all_); }

 private:
  std::string_view group_;
  std::vector<Field> all_;
};

// Null: there is none of that name. In files, '_' may stand for '-'.
const Field* find_field(std::span<const Field> fields, std::string_view name);

// The sentence on a setting, spelt `typed` ("--bacth"), that is none of `names`: our name for it
// where it is a word of the field (base/field_words.h), else the nearest name.
std::string no_such_setting(std::string_view typed, std::span<const std::string> names);

// The readers that fields use. `who` begins the sentence: "--batch".
int64_t read_whole(const nlohmann::json& value, const WholeRange& range, std::string_view who);
double read_real(const nlohmann::json& value, const RealRange& range, std::string_view who);
bool read_bool(const nlohmann::json& value, std::string_view who);
Span read_span(const nlohmann::json& value, std::string_view who);
std::string read_text(const nlohmann::json& value, std::string_view who);
nlohmann::json to_json(const Span& span);

}  // namespace thimble
