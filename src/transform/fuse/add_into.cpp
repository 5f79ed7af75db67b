// base + scale * (t B), of a product of few columns t = x A: an adapter beside a linear map. The
// product adds to the base where it lies, and t is scaled in place of the result: two tensors as
// large as the base less, and as many passes, in either direction.
#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

// The node that makes the value, if it is of that op and nobody else reads the value.
const Node* only_read_here(const Fusing& f, ValueId value, std::string_view op) {
  return f.readers(value) == 1 ? f.maker(value, op) : nullptr;
}

bool is_linear(const Fusing& f, ValueId value) {
  return only_read_here(f, value, "matmul") != nullptr ||
         only_read_here(f, value, "bias_act") != nullptr;
}

bool fuse_adapter(Fusing& f, NodeId root) {
  const std::vector<ValueId> in = f.graph()[root].inputs;
  const ValueId y = f.graph()[root].outputs[0];
  for (const size_t first : {size_t{0}, size_t{1}}) {
    const ValueId base = in[first];
    ValueId product = in[1 - first];
    double factor = 1;
    if (const Node* scale = only_read_here(f, product, "scale")) {
      factor = scale->attrs.real("factor");
      product = scale->inputs[0];
    }
    const Node* wide = only_read_here(f, product, "matmul");
    if (wide == nullptr || wide->inputs.size() != 2 || !is_linear(f, base)) continue;
    const Node* narrow = only_read_here(f, wide->inputs[0], "matmul");
    const bool same = f.type(base) == f.type(y) && f.type(product) == f.type(y);
    if (narrow == nullptr || !same || f.shape(wide->inputs[0]).back() >= f.shape(y).back())
      continue;
    std::vector<ValueId> factors = wide->inputs;
    const Attrs attrs = wide->attrs;
    if (factor != 1) factors[0] = f.apply("scale", {factors[0]}, {{"factor", factor}})[0];
    factors.push_back(base);
    f.replace(y, f.apply("matmul", factors, attrs)[0]);
    return true;
  }
  return false;
}

}  // namespace

extern const PatternDef pattern_add_into{
    .name = "add_into", .roots = {"add"}, .fuse = fuse_adapter};

}  // namespace thimble
