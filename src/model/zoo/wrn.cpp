// wrn-D-K: WideResNet for small images (Zagoruyko & Komodakis 2016), pre-activation, depth
// D = 6n + 4, width K. Where the shape changes, relu(bn(x)) feeds both branches.
#include <array>

#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"
#include "model/name.h"

namespace thimble {
namespace {

bool matches(std::string_view name) {
  const auto numbers = numbers_after(name, "wrn-", '-');
  if (!numbers) return false;
  user_check(numbers->size() == 2, "'{}' is not wrn-D-K, for example wrn-28-2", name);
  const int64_t depth = (*numbers)[0];
  user_check(depth >= 10 && (depth - 4) % 6 == 0 && depth <= 6004,
             "'{}': the depth of a wrn is 6n + 4: 10, 16, 22, 28, ...", name);
  user_check((*numbers)[1] >= 1 && (*numbers)[1] <= 64, "'{}': the width of a wrn is 1 to 64",
             name);
  return true;
}

void fields(ModelOptions& options, Fields& list) {
  list_dropout(options, list);
  list_norm(options, list);
}

ValueId block(Layers& net, ValueId x, int64_t out, int64_t stride) {
  const auto [first, skip] = net.pre_activated(x, out, stride);
  ValueId y = net.conv("conv1", first, out, 3, stride);
  y = net.dropout(net.norm("bn2", y, "relu"));
  return net.build().op("add", {net.conv("conv2", y, out, 3), skip});
}

Model build(const ModelOptions& options) {
  const std::vector<int64_t> numbers = *numbers_after(options.name, "wrn-", '-');
  const int64_t blocks = (numbers[0] - 4) / 6;
  const std::array<int64_t, 3> widths = {16 * numbers[1], 32 * numbers[1], 64 * numbers[1]};
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.conv("stem", net.images(), 16, 3);
  for (size_t group = 0; group < widths.size(); ++group) {
    for (int64_t i = 0; i < blocks; ++i) {
      const Builder::Scope scope(b, fmt::format("group{}.block{}", group + 1, i + 1));
      x = block(net, x, widths[group], group > 0 && i == 0 ? 2 : 1);
    }
  }
  x = net.norm("bn", x, "relu");
  x = b.op("global_avg_pool", {x});
  return net.classify(x);
}

}  // namespace

extern const ModelFamily family_wrn{
    .pattern = "wrn-D-K",
    .summary = "WideResNet for small images, depth D = 6n + 4, width K",
    .matches = matches,
    .batch = 100,
    .image = {32, 32, 3},
    .fields = fields,
    .build = build};

}  // namespace thimble
