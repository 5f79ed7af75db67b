#include "comm/interconnect.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace thimble {
namespace {

struct Known {
  std::string_view name;
  double latency, bandwidth;
};

// Round figures of what messages get through, not of what wires could carry: NVLink 4 within a machine,
// PCIe 4 with 16 lanes, Ethernet of 25 Gbit/s, processes that share the memory of one machine.
constexpr std::array<Known, 4> kKnown = {{{"nvlink", 3e-6, 300e9},
                                          {"pcie", 5e-6, 22e9},
                                          {"25gbe", 20e-6, 2.9e9},
                                          {"memory", 2e-6, 4e9}}};

bool read_number(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

Interconnect parse_interconnect(std::string_view text) {
  for (const Known& known : kKnown) {
    if (known.name == text) return {std::string(text), known.latency, known.bandwidth};
  }
  const size_t comma = text.find(',');
  Interconnect result = {std::string(text)};
  const bool numbers = comma != std::string_view::npos &&
                       read_number(text.substr(0, comma), result.latency) &&
                       read_number(text.substr(comma + 1), result.bandwidth);
  user_check(numbers && result.latency >= 0 && result.bandwidth > 0,
             "--interconnect is nvlink, pcie, 25gbe, memory, or seconds and bytes a second like "
             "2e-6,2.5e10; not '{}'",
             text);
  return result;
}

}  // namespace thimble
