#include "execute/costs.h"

#include <fmt/format.h>

#include <unordered_map>

#include "backend/tunable_kernel.h"
#include "execute/model_scale.h"

namespace thimble {
namespace {

// How many kernels have a time of which origin.
struct Origins {
  int kernels = 0;
  int measured = 0;
  std::string oldest;  // date of a measurement in use

  void add(const KernelTime* time) {
    ++kernels;
    if (time == nullptr) return;
    ++measured;
    if (oldest.empty() || time->date < oldest) oldest = time->date;
  }

  std::string text(std::string_view device, bool scaled) const {
    if (measured == 0) return fmt::format("{}, modelled{}", device, scaled ? ", scaled" : "");
    if (measured == kernels) return fmt::format("{}, measured {}", device, oldest);
    return fmt::format("{}, {} of {} kernels measured {}", device, measured, kernels, oldest);
  }
};

}  // namespace

std::string link_key(std::string_view what, int ranks) {
  return fmt::format("{}({} ranks)", what, ranks);
}

const KernelTime* use_fastest(const Signature& signature, Kernel& kernel,
                              const CostTable& measured) {
  const auto time_of = [&]() -> const KernelTime* {
    const auto found = measured.find(kernel_key(signature, kernel));
    return found == measured.end() ? nullptr : &found->second;
  };
  auto* const variants = dynamic_cast<TunableKernel*>(&kernel);
  if (variants == nullptr) return time_of();
  const KernelTime* fastest = nullptr;
  int best = variants->used();
  for (int v = 0; v < variants->variants(); ++v) {
    variants->use(v);
    const KernelTime* const time = time_of();
    if (time == nullptr || (fastest != nullptr && time->seconds >= fastest->seconds)) continue;
    fastest = time;
    best = v;
  }
  variants->use(best);
  return fastest;
}

Costs gather_costs(const Graph& graph, Backend& backend, const CostTable& measured) {
  const CostTable none;
  const CostTable& table = backend.runs() ? measured : none;
  const ModelScale scale(table);
  Origins origins;
  Costs costs;
  std::unordered_map<Signature, NodeCost, SignatureHash> known;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    auto [entry, fresh] = known.try_emplace(signature);
    if (fresh) {
      Kernel& kernel = backend.kernel(signature);
      double seconds = 0;
      if (!signature.op->view) {
        const KernelTime* time = use_fastest(signature, kernel, table);
        origins.add(time);
        if (time != nullptr) {
          seconds = time->seconds;
        } else {
          seconds = backend.seconds(signature);
          if (!table.empty()) seconds *= scale.of(kernel_key(signature, kernel), seconds);
        }
      }
      entry->second = {seconds, signature.op->work_of(signature).flops, kernel.workspace};
    }
    costs.nodes.push_back(entry->second);
  }
  costs.source = origins.text(backend.name(), !table.empty());
  return costs;
}
}  // namespace thimble
