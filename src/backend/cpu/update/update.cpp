// update: one pass over weight, gradient and state.
#include "backend/cpu/update/update.h"

#include "backend/cpu/update/rule_kernels.h"
#include "base/error.h"
#include "base/number/philox.h"
#include "base/number/stochastic_rounding.h"
#include "ops/update/update_layout.h"

namespace thimble {
namespace {

// Does nothing in a step that is skipped: the outputs are the inputs' next versions, at their
// bytes.
class Update final : public Kernel {
 public:
  Update(std::unique_ptr<Kernel> kernel, size_t own_inputs)
      : kernel_(std::move(kernel)), own_inputs_(own_inputs) {
    name = kernel_->name;
    workspace = kernel_->workspace;
  }
  void run(const KernelArgs& args) override {
    if (gradient_factor(args, own_inputs_) != 0) kernel_->run(args);
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const size_t own_inputs_;
};

std::unique_ptr<Kernel> wrapped(const Signature& s, std::unique_ptr<Kernel> kernel,
                                size_t own_inputs) {
  const bool skips = kernel != nullptr && s.attrs.integer("scaled", 0) != 0;
  return skips ? std::make_unique<Update>(std::move(kernel), own_inputs) : std::move(kernel);
}

template <class T>
void round_range(const float* from, T* to, int64_t first, int64_t count, const RoundingKey& all,
                 uint32_t output) {
  PhiloxCounter words = {};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = first + i;
    if (i == 0 || at % 4 == 0) {
      words = philox({static_cast<uint32_t>(all.first + at / 4), all.stream, all.step, 16 + output},
                     all.key);
    }
    to[at] = round_stochastically(from[i], words[static_cast<size_t>(at % 4)], TypeTag<T>{});
  }
}

}  // namespace

void finish_stochastically(const KernelArgs& args, size_t output, const float* room, int64_t first,
                           int64_t count) {
  const TensorRef& to = args.outputs[output];
  const RoundingKey all =
      rounding_key(args.inputs.back().as<const int64_t>(), *args.attrs, to.elements());
  const auto which = static_cast<uint32_t>(output);
  if (to.type.dtype == DType::f16) {
    round_range(room, to.as<Half>(), first, count, all, which);
  } else {
    round_range(room, to.as<BFloat16>(), first, count, all, which);
  }
}

void finish_compensated(const KernelArgs& args, size_t output, const float* room, int64_t first,
                        int64_t count) {
  if (output + 1 < args.outputs.size()) {
    narrow(room, args.outputs[output], first, count);
    return;
  }
  constexpr int64_t kPiece = 256;
  float rest[kPiece];
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t piece = std::min(kPiece, count - begin);
    widen(args.outputs[0], first + begin, piece, rest);
    for (int64_t i = 0; i < piece; ++i) rest[i] = room[begin + i] - rest[i];
    narrow(rest, args.outputs[output], first + begin, piece);
  }
}

const CpuRuleKernels& cpu_rule(const UpdateRule& rule) {
  for (const CpuRuleKernels* kernels : all_cpu_rules()) {
    if (kernels->rule == rule.name) return *kernels;
  }
  internal_check(false, "a rule without kernels");
  return *all_cpu_rules().front();
}

namespace {

std::unique_ptr<Kernel> make(const Signature& s) {
  const UpdateRule& rule = *find_update_rule(s.attrs.text("rule", ""));
  const CpuRuleKernels& kernels = cpu_rule(rule);
  const bool kahan = is_compensated(s.attrs);
  const auto own = static_cast<size_t>(update_layout(rule, false, kahan).own);
  const auto cost = static_cast<int64_t>(2 * rule.flops / 7);
  const int64_t elements = s.outputs[0].elements();
  if (kahan) {
    const DType weight = s.outputs[0].dtype;
    const bool fits = can_stage(s) && is_sixteen_bit(weight) && s.outputs.back().dtype == weight;
    if (!fits) return nullptr;
    return wrapped(s,
                   std::make_unique<StagedLoop>(s, kernels.update_kahan, elements, cost, 0,
                                                finish_compensated),
                   own);
  }
  if (!is_stochastic(s.attrs) || !can_stage(s)) {
    return wrapped(s, make_elementwise(s, kernels.update, cost), own);
  }
  return wrapped(
      s, std::make_unique<StagedLoop>(s, kernels.update, elements, cost, 0, finish_stochastically),
      own);
}

}  // namespace

extern const CpuKernel cpu_update{"update", make};

}  // namespace thimble
