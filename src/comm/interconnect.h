// The link between ranks, as a latency and a bandwidth: predicts the time of a collective, for
// plans.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

struct Interconnect {
  std::string name;
  double latency = 0;    // seconds until the first byte of a message is there
  double bandwidth = 1;  // bytes a second, in and out of a rank, each

  // Pairwise exchange and a ring alike: messages one after the other.
  double seconds(double messages, double bytes) const {
    return messages * latency + bytes / bandwidth;
  }
};

// "nvlink", "pcie", "25gbe", "memory", or "LATENCY,BANDWIDTH". UserError else.
Interconnect parse_interconnect(std::string_view text);

}  // namespace thimble
