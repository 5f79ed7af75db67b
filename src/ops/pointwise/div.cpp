// div(a, b) -> y = a / b, broadcast like numpy.
#include "ops/pointwise/binary.h"
#include "ops/reading.h"

namespace thimble {
namespace {

// The divisor's gradient reads the result, never the dividend: -dy * y / b.
void gradient(GradientBuilder& g) {
  Builder& build = g.build();
  if (!g.wants(0) && !g.wants(1)) return;
  const ValueId share = build.op("div", {g.upstream(), g.input(1)});
  if (g.wants(1)) {
    const ValueId product = build.op("mul", {share, g.output()});
    const ValueId sum = sum_to_shape(build, product, build.shape(g.input(1)));
    g.give(1, build.op("scale", {sum}, {{"factor", -1.0}}));
  }
  if (g.wants(0)) g.give(0, sum_to_shape(build, share, build.shape(g.input(0))));
}

// Divisors away from zero.
std::vector<Sample> samples() {
  std::vector<Sample> result = binary_samples();
  for (Sample& sample : result) sample.fills = {{}, {Fill::Kind::uniform, 0.5, 2}};
  return result;
}

OpDef definition() {
  OpDef op = binary_op<"div", rows_of_quotient>("quotient of two tensors, element by element",
                                                gradient, [](auto a, auto b) { return a / b; });
  op.samples = samples;
  op.reading = reads<Reading::curved, 1>;
  return op;
}

}  // namespace

extern const OpDef op_div = definition();

}  // namespace thimble
