// A vector that is added to the rows of a product becomes bias_act, whose gradient knows that the
// sum of the rows is one of columns. So products of files that write biases apart (GPT-2's, ONNX's)
// end as our own linear layers do.
#include <string>

#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

bool fuse_bias(Fusing& f, NodeId root) {
  const std::vector<ValueId> in = f.graph()[root].inputs;
  const ValueId y = f.graph()[root].outputs[0];
  for (const size_t first : {size_t{0}, size_t{1}}) {
    const ValueId product = in[first], bias = in[1 - first];
    const Node* node = f.maker(f.behind_casts(product), "matmul");
    const Shape rows = f.shape(y);
    const bool fits = node != nullptr && rows.rank() >= 2 && f.shape(product) == rows &&
                      f.shape(bias) == Shape{rows.back()};
    if (!fits) continue;
    const DType kept = f.type(y).dtype;
    const ValueId x = f.in_dtype(product, kept), vector = f.in_dtype(bias, kept);
    f.replace(y, f.apply("bias_act", {x, vector}, {{"act", std::string("none")}})[0]);
    return true;
  }
  return false;
}

}  // namespace

extern const PatternDef pattern_bias{.name = "bias", .roots = {"add"}, .fuse = fuse_bias};

}  // namespace thimble
