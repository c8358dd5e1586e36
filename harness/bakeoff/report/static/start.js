window.bakeoff.startMatrix();
window.bakeoff.startLimits();
window.bakeoff.startQueries();
window.bakeoff.drawCharts();
