// Why a plan keeps a tensor, keeps it encoded or computes it again: a sentence each, from the
// plan's own figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// A value that is kept in another form.
struct KeptAs {
  ValueId value;
  std::string codec;
  std::vector<ValueId> code;
};

struct WhyRequest {
  const Graph& graph;
  const Costs& costs;
  const Plan& plan;
  std::vector<KeptAs> encoded = {};
  // The seconds that a MiB more of budget would save (report/frontier.h). 0: not known, or none.
  double price = 0;
};

struct Why {
  std::string_view fate;  // "kept", "recomputed", ...: one of a few
  std::string reason;
};

// By value.
std::vector<Why> explain_values(const WhyRequest& request);

}  // namespace thimble
