#include "transform/fine_tuning.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace thimble {
namespace {

template <class Number>
Number number_in(const std::string& name, std::string_view text, Number least, Number most) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  user_check(error == std::errc() && stop == end && number >= least && number <= most,
             "--lora {} is a number from {} to {}, not '{}'", name, least, most, text);
  return number;
}

}  // namespace

double AdapterSpec::scale() const {
  const auto of = static_cast<double>(rank);
  return alpha / (rank_stabilised ? std::sqrt(of) : of);
}

AdapterSpec parse_adapters(const std::string& text) {
  AdapterSpec spec;
  if (text == "none") return spec;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string value = equals == part.npos ? "" : part.substr(equals + 1);
    if (name == "rank") {
      spec.rank = number_in<int64_t>(name, value, 1, 1 << 16);
    } else if (name == "alpha") {
      spec.alpha = number_in(name, value, 1e-6, 1e6);
    } else if (name == "dropout") {
      spec.dropout = number_in(name, value, 0.0, 0.99);
    } else if (name == "targets") {
      user_check(!value.empty(), "--lora targets are names of layers joined by +, or linear");
      spec.targets = value == "all-linear" ? "linear" : value;
    } else if (name == "rs" && value.empty()) {
      spec.rank_stabilised = true;
    } else {
      user_check(name != "dora",
                 "--lora dora is not built in; wrap the module with PEFT (use_dora) and import it");
      user_error("--lora has no '{}'; it has rank, alpha, targets, dropout and rs", part);
    }
  }
  user_check(spec.enabled(), "--lora wants a rank: --lora rank=16");
  return spec;
}

std::string to_string(const AdapterSpec& spec) {
  if (!spec.enabled()) return "none";
  std::string text =
      fmt::format("rank={},alpha={},targets={}", spec.rank, spec.alpha, spec.targets);
  if (spec.dropout > 0) text += fmt::format(",dropout={}", spec.dropout);
  return spec.rank_stabilised ? text + ",rs" : text;
}

}  // namespace thimble
